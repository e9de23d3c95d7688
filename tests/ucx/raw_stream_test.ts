/** UCX's stream: bytes arrive in order, as many as requested, at the connected peer. */
import { assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { check, fc } from "../support/property.ts";
import { assertContent, Bordered, contentOf, memoryKinds, turns } from "../support/ucx_messages.ts";
import { pair, pairings } from "./pair.ts";
import { openScripted } from "./scripted_endpoint.ts";

const size = fc.oneof(fc.nat(300), fc.constantFrom(1, 8192, 9000, 100_000, 1 << 20));

const plans = fc.record({
  sends: fc.array(fc.record({ size, pause: fc.nat(3) }), { maxLength: 8 }),
  receives: fc.array(fc.record({ size, pause: fc.nat(3), kind: fc.constantFrom(...memoryKinds) }), { maxLength: 8 }),
});

for (const tls of [undefined, "tcp", "sm,tcp"]) {
  for (const how of pairings) {
    test(`the bytes sent are received, whatever the pieces: ${tls ?? "default"}, ${how}`, async () => {
      using ucx = Ucx.open(tls === undefined ? {} : { config: { TLS: tls } });
      const { here, there, close } = await pair(ucx, how);
      let message = 0;
      await check(
        fc.asyncProperty(plans, async ({ sends, receives }) => {
          const content = contentOf(message++, sends.reduce((sum, { size }) => sum + size, 0));
          const sent = (async () => {
            const all: Promise<void>[] = [];
            let at = 0;
            for (const { size, pause } of sends) {
              await turns(pause);
              all.push(here.rawStream.send(content.subarray(at, at + size)));
              at += size;
            }
            await Promise.all(all);
          })();
          const whole = new Uint8Array(content.length);
          const all: Promise<void>[] = [];
          let at = 0;
          const last = { size: Infinity, pause: 1, kind: "array" } as const;
          for (const { size, pause, kind } of [...receives, last]) {
            const length = Math.min(size, content.length - at);
            const memory = new Bordered(kind, length);
            const from = at;
            at += length;
            all.push(
              there.rawStream.recvAll(memory.memory, { timeout: 20_000 }).then(() => {
                whole.set(memory.bytes, from);
                memory.assertUntouched(length);
                memory.close();
              }),
            );
            await turns(pause);
          }
          await Promise.all([sent, ...all]);
          assertContent(whole, message - 1);
        }),
        12,
      );
      await close();
    });
  }
}

test("a pending receive does not block a close, and ends with the endpoint", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm,tcp" } });
  const { here, there, close } = await pair(ucx, "addresses");
  const endless = assertRejects(() => there.rawStream.recvAll(new Uint8Array(8)), TypeError, "endpoint was closed");
  await here.rawStream.send(new Uint8Array(7));
  await turns(5);
  await there.close();
  await endless;
  await assertRejects(() => there.rawStream.recvAll(new Uint8Array(8)), TypeError, "the endpoint is closed");
  await assertRejects(() => there.rawStream.send(new Uint8Array(8)), TypeError, "the endpoint is closed");
  await close();
});

test("receives fail when the other side closes; limits and misspelled options are errors", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const { here, there, close } = await pair(ucx, "listener");
  const { rawStream } = there;
  await assertRejects(() => rawStream.recvAll(new Uint8Array(8), { timeout: -1 }), RangeError, "at least 0");
  // @ts-expect-error: a misspelled option is refused
  await assertRejects(() => rawStream.send(new Uint8Array(8), { timeOut: 1 }), TypeError, "timeOut");
  await assertRejects(() => rawStream.recvAll(new Uint8Array(8), { signal: AbortSignal.abort("no") }));
  await rawStream.recvAll(new Uint8Array(0), { timeout: 10_000 }); // zero bytes are always available
  await here.rawStream.send(new Uint8Array(0)); // an empty fragment that no receive waits for would end this process
  await here.flush();
  await turns(10);
  const late = new Uint8Array(4);
  await assertRejects(() => rawStream.recvAll(late, { timeout: 5 }), UcxError, "UCS_ERR_TIMED_OUT");
  await here.rawStream.send(Uint8Array.of(1, 2, 3, 4, 5, 6)); // the first four belong to the receive that timed out
  const next = new Uint8Array(2);
  await rawStream.recvAll(next);
  assertEquals([...late, ...next], [1, 2, 3, 4, 5, 6]);
  const endless = assertRejects(() => rawStream.recvAll(new Uint8Array(8)), UcxError);
  await turns(3);
  await here.close();
  await endless;
  await close();
});

// UCX's builds without assertions do not set the status of a receive whose bytes have arrived. After a failed send to a
// peer that had gone, 8 of 10 later connections to UCXX's listener ended with that send's status, in the greeting.
test("a receive of bytes that have arrived does not end as an operation before it: a scripted UCX", async () => {
  for (const status of [-16, -25]) { // UCS_ERR_CANCELED, UCS_ERR_CONNECTION_RESET
    const { ucp, endpoint, progress } = openScripted();
    const ended = assertRejects(() => endpoint.send(new Uint8Array(8)), UcxError); // request 1
    ucp.finish(1, status);
    await ended;
    await endpoint.rawStream.recvAll(new Uint8Array(4));
    progress.stop(new TypeError("the test is over"), 0);
  }
});

test("a receive of bytes that have arrived does not end as an operation before it: the installed UCX", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const [one, other] = [ucx.createWorker(), ucx.createWorker()];
  const [here, there] = await Promise.all([one.connect(other.address), other.connect(one.address)]);
  await here.rawStream.send(Uint8Array.of(0));
  await there.rawStream.recvAll(new Uint8Array(1)); // connected
  const never = other.recv(new Uint8Array(8), { tag: 1n, timeout: 1 });
  await assertRejects(() => never, UcxError, "UCS_ERR_TIMED_OUT");
  await here.rawStream.send(Uint8Array.of(1, 2, 3, 4));
  await here.flush();
  await turns(20);
  const received = new Uint8Array(4);
  await there.rawStream.recvAll(received);
  assertEquals([...received], [1, 2, 3, 4]);
  await Promise.all([one.close(), other.close()]);
});
