"""The other side of the tests of UCXX's protocol: UCXX itself. `listen` prints its port; `connect PORT` connects.

Then it answers what comes, in the order of `talk`, and ends with a message on the last tag.
"""

import asyncio
import sys

import numpy as np
import ucxx

TAGS = [None, 0, 1, 2**32, 2**61 - 2, 2**61 - 1, 2**61, 2**63 + 7, 2**64 - 1]


async def talk(endpoint):
    for tag in TAGS:
        array = np.zeros(8, dtype="u1")
        await endpoint.recv(array, tag=tag)
        await endpoint.send(array + 1, tag=tag)
    exact = np.zeros(4, dtype="u1")
    await endpoint.recv(exact, tag=2**64 - 2, force_tag=True)
    await endpoint.send(exact[::-1].copy(), tag=2**63, force_tag=True)
    for count in (1, 100_000):
        numbers = np.zeros(count, dtype="f8")
        await endpoint.recv(numbers, tag=9)
        await endpoint.send(numbers * 2, tag=9)
    for tag in (None, 3):
        parts = await endpoint.recv_multi(tag=tag)
        await endpoint.send_multi([np.array(part) + 1 for part in reversed(parts)], tag=tag)
    for _ in range(4):
        message = np.array(await endpoint.am_recv(), dtype="u1")
        await endpoint.am_send(message + 1)
    await endpoint.recv(np.zeros(1, dtype="u1"), tag=99)
    print("talked", flush=True)
    await endpoint.close()


async def main(role, port):
    if role == "connect":
        await talk(await ucxx.create_endpoint("127.0.0.1", port))
        return
    over = asyncio.Event()

    async def serve(endpoint):
        try:
            await talk(endpoint)
        finally:
            over.set()

    listener = ucxx.create_listener(serve)
    print(listener.port, flush=True)
    await over.wait()


asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
