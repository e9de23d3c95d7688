/** Messages that arrive unexpected: seen, taken, and received into memory allocated for them. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { test } from "node:test";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { ucp as tables } from "../../bindings/ucp.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { openUcp } from "../../src/ucx/library.ts";
import type { UcxMessage } from "../../src/ucx/receiver.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { Cuda, PinnedMemoryResource } from "../../mod.ts";
import { until } from "../support/until.ts";
import { FailingCalls } from "../support/failing_calls.ts";
import { check, fc } from "../support/property.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";

interface Message {
  readonly index: number;
  readonly tag: bigint;
  readonly size: number;
}

const steps = fc.array(
  fc.record({
    do: fc.constantFrom("send", "probe", "take", "recv", "receive taken", "release taken"),
    tag: fc.bigInt(0n, 3n),
    mask: fc.constantFrom(0n, 1n, 2n, 3n, 2n ** 64n - 1n),
    size: fc.constantFrom(0, 1, 100, 9000, 100_000),
  }),
  { maxLength: 25 },
);

for (const tls of ["tcp", "sm"]) {
  test(`probes, takes and receives find the earliest message that matches, and each message once: ${tls}`, async () => {
    using ucx = Ucx.open({ config: { TLS: tls } });
    const sender = ucx.createWorker();
    // A limit that is not reached changes nothing.
    const receivers = [ucx.createWorker(), ucx.createWorker({ limits: { taggedMessages: 100 } })] as const;
    const endpoints = [await sender.connect(receivers[0].address), await sender.connect(receivers[1].address)] as const;
    let index = 0;
    await check(
      fc.asyncProperty(steps, fc.constantFrom(0, 1), async (program, pair) => {
        const [receiver, endpoint] = [receivers[pair], endpoints[pair]];
        const here: Message[] = [];
        const taken: [UcxMessage, Message][] = [];
        const sends: Promise<void>[] = [];
        const matching = (tag: bigint, mask: bigint) =>
          here.findIndex((message) => (message.tag & mask) === (tag & mask));
        for (const { do: what, tag, mask, size } of program) {
          const at = matching(tag, mask);
          const found = here[at];
          const expected = found === undefined ? null : { length: found.size, tag: found.tag };
          if (what === "send") {
            sends.push(endpoint.send(contentOf(index, size), { tag }));
            here.push({ index: index++, tag, size });
            await until(() => receiver.probe(tag, 2n ** 64n - 1n) !== null);
            await arrived(receiver, here);
          } else if (what === "probe") assertEquals(receiver.probe(tag, mask), expected);
          else if (what === "take") {
            const message = receiver.take(tag, mask);
            assertEquals(message === null ? null : { length: message.length, tag: message.tag }, expected);
            if (message !== null && found !== undefined) taken.push([message, found]);
            if (found !== undefined) here.splice(at, 1);
          } else if (what === "recv" && found !== undefined) {
            const into = new Uint8Array(found.size);
            assertEquals(await receiver.recv(into, { tag, mask }), expected);
            assertContent(into, found.index);
            here.splice(at, 1);
          } else if (what === "receive taken") {
            const [[message, sent] = []] = taken.splice(Number(tag) % (taken.length || 1), 1);
            if (message === undefined || sent === undefined) continue;
            const into = new Uint8Array(sent.size);
            assertEquals(await message.recv(into), { length: sent.size, tag: sent.tag });
            assertContent(into, sent.index);
          } else if (what === "release taken") taken.splice(Number(tag) % (taken.length || 1), 1)[0]?.[0].release();
        }
        for (const [message, { size }] of taken) await message.recv(new Uint8Array(size));
        for (const { size, tag } of here) await receiver.recv(new Uint8Array(size), { tag });
        await Promise.all(sends);
        assertEquals(receiver.probe(0n, 0n), null);
      }),
      20,
    );
    await Promise.all([sender, ...receivers].map((worker) => worker.close()));
  });
}

/** Waits until all messages sent can be seen: UCX reports only the first match. */
async function arrived(receiver: { poll(): number }, here: readonly Message[]): Promise<void> {
  for (let i = 0; i < 5 + here.length; i++) {
    receiver.poll();
    await nextTurn();
  }
}

test("a message is received once, into memory that it fits into, and refused memory leaves it as it was", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
  const endpoint = await sender.connect(receiver.address);
  await endpoint.send(new Uint8Array([1, 2, 3]));
  await endpoint.send(new Uint8Array([4, 5, 6]), { tag: 1n });
  await endpoint.send(new Uint8Array([7, 8, 9]), { tag: 2n });
  // Probing is enough: the event loop need not turn.
  for (const end = performance.now() + 20_000; receiver.probe(2n) === null && performance.now() < end;);
  const message = receiver.take();
  assert(message !== null);
  await assertRejects(() => message.recv(new Uint8Array(new SharedArrayBuffer(3))), TypeError, "shared memory");
  const into = new Uint8Array(3);
  assertEquals(await message.recv(into, { timeout: 5000 }), { length: 3, tag: 0n });
  assertEquals([...into], [1, 2, 3]);
  await assertRejects(() => message.recv(into), TypeError, "twice");
  const short = receiver.take(1n);
  const error = await assertRejects(
    async () => await short?.recv(new Uint8Array(2)),
    UcxError,
    "longer than the memory",
  );
  assertEquals(error.statusName, "UCS_ERR_MESSAGE_TRUNCATED");
  assertThrows(() => receiver.probe(-1n), RangeError, "expected 0 to 2^64 - 1");
  assertThrows(() => receiver.take(0n, 2n ** 64n), RangeError, "expected 0 to 2^64 - 1");
  assert(receiver.take(2n) !== null); // never received
  await Promise.all([sender.close(), receiver.close()]);
  assertThrows(() => receiver.probe(), TypeError, "the worker is closed");
});

test("a message that is released is received by nobody, and what receives it already goes on", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  using calls = new FailingCalls(openUcp().functions, { tag: tables.tag }); // counts them
  await using sender = ucx.createWorker();
  const receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  const size = 1 << 20; // larger than UCX buffers unasked: the send ends with the receive
  const taken = async (index: number): Promise<[UcxMessage, Promise<void>]> => {
    const sending = endpoint.send(contentOf(index, size));
    let message: UcxMessage | null = null;
    await until(() => (message = receiver.take()) !== null);
    assert(message !== null);
    return [message, sending];
  };
  const [discarded, sending] = await taken(1);
  discarded.release();
  await sending;
  discarded.release();
  const into = new Uint8Array(size);
  await assertRejects(() => discarded.recv(into), TypeError, "released");
  assertEquals(receiver.probe(), null);

  const [received, second] = await taken(2);
  const receiving = received.recv(into);
  received.release();
  await Promise.all([receiving, second]);
  assertContent(into, 2);

  // A receive that waits for a stream has not begun: it goes on, and where it is given up, the message is discarded.
  const stream = Cuda.simulate({ schedule: "latest" }).device(0).createStream();
  using pinned = new PinnedMemoryResource(stream.device).allocate(size, { stream });
  for (const isGivenUp of [false, true]) {
    const [message, third] = await taken(3);
    pinned.fill(0, { stream });
    const leaving = new AbortController();
    const receiving = message.recv(pinned, { signal: leaving.signal });
    message.release();
    if (isGivenUp) leaving.abort();
    else stream.synchronize();
    if (isGivenUp) {
      await assertRejects(() => receiving, DOMException);
    } else {
      await receiving;
      assertContent(pinned.bytes(), 3);
    }
    await third;
    await assertRejects(() => message.recv(into), TypeError, isGivenUp ? "released" : "twice");
  }
  stream.synchronize();

  const [late, last] = await taken(4);
  const [early, first] = await taken(5);
  early.release();
  await first;
  receiver.abort();
  late.release();
  await last;
  assertEquals(calls.counts.get("ucp_tag_msg_recv_nbx"), 6, "each of six messages is received or discarded once");
});

for (const tls of ["tcp", "sm,self"]) {
  test(`the send of a taken message ends when the worker that has taken it is closed: ${tls}`, async () => {
    using ucx = Ucx.open({ config: { TLS: tls } });
    const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
    const to = await sender.connect(receiver.address);
    const sending = to.send(new Uint8Array(new ArrayBuffer(1 << 20))); // larger than UCX buffers unasked
    await until(() => receiver.take() !== null);
    receiver.abort();
    const late = pause(10_000, "never", { ref: false });
    assertEquals(await Promise.race([sending, late]), undefined);
  });
}
