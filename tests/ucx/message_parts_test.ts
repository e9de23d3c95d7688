/** Messages of several parts: each arrives whole, in its place, whatever else with the same tag is in flight. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { partHeaderBytes, partHeaders, readPartHeader } from "../../src/ucx/message_parts.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { check, fc } from "../support/property.ts";
import { Bordered, contentOf, memoryKinds } from "../support/ucx_messages.ts";

const part = fc.record({ bytes: fc.maxSafeNat(), isCuda: fc.boolean() }, { noNullPrototype: true });

test("headers contain the number of parts, their sizes and whether on a GPU, a hundred to a header", async () => {
  await check(fc.property(fc.array(part, { maxLength: 320 }), (parts) => {
    const headers = partHeaders(parts);
    assertEquals(headers.length, Math.max(1, Math.ceil(parts.length / 100)));
    const read = headers.map((header) => readPartHeader(header, header.length));
    assertEquals(read.flatMap(({ parts }) => parts), parts);
    assertEquals(read.map(({ hasNext }) => hasNext), headers.map((_, i) => i < headers.length - 1));
  }));
  // UCXX's field layout: a bool, the count, 100 ints and 100 sizes, without padding.
  const [header = new Uint8Array()] = partHeaders([{ bytes: 0x0102, isCuda: true }, { bytes: 3, isCuda: false }]);
  assertEquals(header.length, 1 + 8 + 400 + 800);
  assertEquals([...header.subarray(0, 17)], [0, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
  assertEquals([...header.subarray(409, 425)], [2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
});

test("an invalid header is refused", () => {
  const [good = new Uint8Array(new ArrayBuffer(0))] = partHeaders([]);
  assertThrows(() => readPartHeader(good, partHeaderBytes - 1), TypeError, "Was it sent by sendMany?");
  for (const [at, value] of [[0, 2], [1, 101], [8, 128]] as const) {
    const bad = good.slice();
    bad[at] = value;
    assertThrows(() => readPartHeader(bad, bad.length), TypeError, "expected a header");
  }
});

const message = fc.record({
  tag: fc.constantFrom(0n, 7n, 0xffff_ffff_ffff_ffffn),
  sizes: fc.array(fc.constantFrom(0, 1, 100, 9000), { maxLength: 5 }),
  kind: fc.constantFrom(...memoryKinds),
});

test("messages of several parts arrive whole and in order per tag, however many are received at once", async () => {
  using ucx = Ucx.open();
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  await check(
    fc.asyncProperty(fc.array(message, { maxLength: 6 }), fc.boolean(), async (messages, isReceivedFirst) => {
      let number = 0;
      const receive = () => messages.map(({ tag }) => receiver.recvMany({ tag }));
      const early = isReceivedFirst ? receive() : null;
      const expected = messages.map(({ sizes }) => sizes.map((size) => [...contentOf(number++, size)]));
      const sent = messages.map(({ tag, kind }, i) => {
        const parts = (expected[i] ?? []).map((bytes) => {
          const memory = new Bordered(kind, bytes.length);
          memory.bytes.set(bytes);
          return memory.memory;
        });
        return endpoint.sendMany(parts, { tag });
      });
      const received = await Promise.all(early ?? receive());
      await Promise.all(sent);
      assertEquals(received.map((views) => views.map(({ buffer }) => [...buffer.bytes()])), expected);
      for (const view of received.flat()) view.close();
    }),
    60,
  );
  assertEquals(receiver.probe(0n, 0n), null);
});

const few = fc.bigInt({ min: 0n, max: 3n });
const program = fc.record({
  sent: fc.array(fc.record({ tag: few, sizes: fc.array(fc.constantFrom(0, 1, 100, 9000), { maxLength: 3 }) }), {
    maxLength: 5,
  }),
  asked: fc.array(fc.record({ tag: few, mask: fc.constantFrom(0n, 1n, 2n, 3n, 0xffff_ffff_ffff_ffffn) }), {
    maxLength: 5,
  }),
  /** Whether the next step receives, where there is something left to do. */
  order: fc.array(fc.boolean(), { minLength: 10, maxLength: 10 }),
});

test("receives whose masks overlap take whole messages in the order of the calls, and one that gets none holds up others", async () => {
  // Only those of the same tag and mask took turns: a part was taken for a header, or truncated, and a sender hung.
  using ucx = Ucx.open();
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  let number = 0;
  await check(
    fc.asyncProperty(program, async ({ sent, asked, order }) => {
      const contents = sent.map(({ sizes }) => sizes.map((size) => contentOf(number++, size)));
      // The oracle: each call takes the first message left that it matches, unless an earlier one still waits for such.
      const left = sent.map((_, i) => i);
      const gets: (number | null)[] = [];
      for (const [i, { tag, mask }] of asked.entries()) {
        const isHeldUp = asked.slice(0, i).some((before, j) =>
          gets[j] === null && ((before.tag ^ tag) & before.mask & mask) === 0n
        );
        const found = isHeldUp ? -1 : left.findIndex((k) => (((sent[k]?.tag ?? 0n) ^ tag) & mask) === 0n);
        gets.push(found < 0 ? null : left.splice(found, 1)[0] ?? null);
      }
      const stop = new AbortController();
      const receives: Promise<{ tag: bigint; parts: number[][] } | unknown>[] = [];
      const receive = async (options: { tag: bigint; mask?: bigint; signal?: AbortSignal }) => {
        const views = await receiver.recvMany(options);
        const parts = views.map(({ buffer }) => [...buffer.bytes()]);
        for (const view of views) view.close();
        return { tag: views.tag, parts };
      };
      const sends: Promise<void>[] = [];
      for (const isReceive of [...order, ...asked.map(() => true), ...sent.map(() => false)]) {
        const [ask, send] = [asked[receives.length], sent[sends.length]];
        if (isReceive && ask !== undefined) {
          receives.push(receive({ ...ask, signal: stop.signal }).catch((error: unknown) => error));
        } else if (!isReceive && send !== undefined) {
          sends.push(endpoint.sendMany(contents[sends.length] ?? [], { tag: send.tag }));
        }
        await Promise.resolve();
      }
      const message = (k: number) => ({ tag: sent[k]?.tag ?? 0n, parts: (contents[k] ?? []).map((part) => [...part]) });
      for (const [i, got] of gets.entries()) {
        if (got !== null) assertEquals(await receives[i], message(got));
      }
      const reason = new Error("enough");
      stop.abort(reason);
      for (const [i, got] of gets.entries()) if (got === null) assertEquals(await receives[i], reason);
      for (const k of left) assertEquals(await receive({ tag: sent[k]?.tag ?? 0n }), message(k));
      await Promise.all(sends);
      assertEquals(receiver.probe(0n, 0n), null);
    }),
    100,
  );
});

test("three hundred parts are one message, from any sender by a mask, with the tag that it has", async () => {
  using ucx = Ucx.open();
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  const parts = Array.from({ length: 301 }, (_, i) => contentOf(i, i));
  const [received] = await Promise.all([receiver.recvMany({ mask: 0n }), endpoint.sendMany(parts, { tag: 5n })]);
  assertEquals([received.length, received.tag], [301, 5n]);
  const [empty] = await Promise.all([receiver.recvMany({ mask: 0n }), endpoint.sendMany([], { tag: 6n })]);
  assertEquals([empty.length, empty.tag], [0, 6n]);
  assert(received.every(({ buffer }, i) => Buffer.compare(buffer.bytes(), parts[i] ?? new Uint8Array()) === 0));
});

test("a part that cannot be sent, an invalid message, and a limit end the call, and leave nothing behind", async () => {
  using ucx = Ucx.open();
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  using buffer = new HostMemoryResource().allocate(8);
  const closed = new HostMemoryResource().allocate(8);
  closed.close();
  await assertRejects(() => endpoint.sendMany([buffer, closed]), TypeError, "closed MemoryBuffer");
  await assertRejects(() => receiver.recvMany({ timeout: 20 }), Error, "UCS_ERR_TIMED_OUT");
  await endpoint.send(new Uint8Array(3), { tag: 9n });
  await assertRejects(() => receiver.recvMany({ tag: 9n }), TypeError, "got a message of 3 bytes");
  // The cancelled receives consumed nothing.
  const [views] = await Promise.all([receiver.recvMany(), endpoint.sendMany([Uint8Array.of(1), Uint8Array.of(2)])]);
  assertEquals(views.map((view) => [...view.buffer.bytes()]), [[1], [2]]);
  const options = { tag: 1n, timeout: -1 };
  await assertRejects(() => endpoint.sendMany([], options), RangeError, "Cannot wait for -1 ms");
  await assertRejects(() => endpoint.sendMany([], { tag: 1n << 64n }), RangeError, "tag");
});

// Both were taken for the receive of the one message that had arrived: the second waited for ever.
test("of two receives after the other side has closed in order, one gets the message, and the other ends", async () => {
  using ucx = Ucx.open();
  await using server = ucx.createWorker();
  await using client = ucx.createWorker();
  await using listener = server.listen();
  const endpoint = await client.connect(listener);
  await using accepted = await listener.accept();
  assert(accepted !== null);
  await endpoint.sendMany([new Uint8Array(10), new Uint8Array(20)], { tag: 5n });
  await endpoint.close();
  await accepted.closed;
  const limits = { tag: 5n, timeout: 5000 };
  const [first, second] = await Promise.allSettled([accepted.recvMany(limits), accepted.recvMany(limits)]);
  assert(first?.status === "fulfilled" && first.value.length === 2);
  assert(second?.status === "rejected" && `${second.reason}`.includes("has already failed"), `${second?.status}`);
});
