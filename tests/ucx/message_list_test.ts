/** Active messages of several pieces: gathered in order, scattered in order, and not retained. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { Cuda, HostMemoryResource, PinnedMemoryResource, slice, StridedMemoryView, Ucx } from "../../mod.ts";
import { recordingDevice } from "../support/recording_driver.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { check, fc } from "../support/property.ts";
import { Bordered, contentOf, memoryKinds } from "../support/ucx_messages.ts";

const pieces = fc.array(
  fc.record({
    kind: fc.constantFrom(...memoryKinds),
    size: fc.oneof({ weight: 8, arbitrary: fc.nat(300) }, { weight: 1, arbitrary: fc.constant(30_000) }),
  }),
  { maxLength: 6 },
);

for (const tls of ["all", "tcp"]) {
  test(`a message gathered from several pieces is scattered to several, byte by byte: UCX_TLS=${tls}`, async () => {
    using ucx = Ucx.open({ config: { TLS: tls } });
    await using sender = ucx.createWorker();
    await using receiver = ucx.createWorker();
    const endpoint = await sender.connect(receiver.address);
    const messages = receiver.messages()[Symbol.asyncIterator]();
    await check(
      fc.asyncProperty(pieces, pieces, async (from, to) => {
        const total = from.reduce((sum, { size }) => sum + size, 0);
        const content = contentOf(total, total);
        let at = 0;
        const sources = from.map(({ kind, size }) => {
          const memory = new Bordered(kind, size);
          memory.bytes.set(content.subarray(at, at += size));
          return memory;
        });
        const sent = endpoint.sendMessage(sources.map(({ memory }) => memory), { header: "h" });
        const { value: message } = await messages.next();
        assert(message !== undefined);
        assertEquals([message.text, message.length], ["h", total]);
        const room = to.reduce((sum, { size }) => sum + size, 0);
        const rest = { kind: "array" as const, size: Math.max(0, total - room) };
        const targets = [...to, rest].map(({ kind, size }) => new Bordered(kind, size));
        if (room < total) {
          const few = targets.slice(0, -1).map(({ memory }) => memory);
          await assertRejects(() => message.recv(few), RangeError, `Cannot receive ${total} bytes`);
        }
        await message.recv(targets.map(({ memory }) => memory));
        await sent;
        let received = 0;
        for (const target of targets) {
          const here = Math.min(target.bytes.length, total - received);
          assertEquals(Buffer.compare(target.bytes.subarray(0, here), content.subarray(received, received + here)), 0);
          target.assertUntouched(here);
          received += here;
        }
        assertEquals(received, total);
      }),
      60,
    );
  });
}

test("pieces that wait for a stream are gathered once written, without blocking the event loop", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  const cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const stream = device.createStream();
  using buffer = new PinnedMemoryResource(device).allocate(4, { stream });
  buffer.fill(5, { stream });
  const turned = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint8" }).sliced(slice(null, null, -1));
  const sent = endpoint.sendMessage([Uint8Array.of(1), turned, buffer]);
  const { value: message } = await receiver.messages()[Symbol.asyncIterator]().next();
  assertEquals([...(await message?.bytes() ?? [])], [1, 5, 5, 5, 5, 5, 5, 5, 5]);
  await sent;
  stream.close();
  buffer.close();
  cuda.close();
});

test("a large message is scattered to pieces that a stream still uses once it is done with them", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  const cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const stream = device.createStream();
  const content = contentOf(1, 600_000);
  using buffer = new PinnedMemoryResource(device).allocate(500_000, { stream });
  const rest = new Uint8Array(200_000);
  buffer.fill(5, { stream });
  const sent = endpoint.sendMessage(content);
  const { value: message } = await receiver.messages()[Symbol.asyncIterator]().next();
  await message?.recv([buffer, rest]);
  await sent;
  stream.synchronize();
  assertEquals(Buffer.compare(buffer.bytes(), content.subarray(0, 500_000)), 0);
  assertEquals(Buffer.compare(rest.subarray(0, 100_000), content.subarray(500_000)), 0);
  assert(rest.subarray(100_000).every((byte) => byte === 0));
  stream.close();
  buffer.close();
  cuda.close();
});

test("messages of one piece and of several follow each other, each with its own length", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  const messages = endpoint.messages()[Symbol.asyncIterator]();
  const one = contentOf(1, 100);
  const lengths: number[] = [];
  for (const what of [one, [one, one, one], one]) {
    const sent = endpoint.sendMessage(what);
    const { value: message } = await Promise.race([messages.next(), worker.messages()[Symbol.asyncIterator]().next()]);
    lengths.push(message?.length ?? NaN);
    message?.release();
    await sent;
  }
  assertEquals(lengths, [100, 300, 100]);
});

test("pieces that cannot be used are refused, and none of them is retained", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using sender = ucx.createWorker();
  const endpoint = await sender.connect(sender.address);
  let freed = 0;
  const counted = MemoryBuffer.fromAllocation({ ptr: 4096n, size: 8, device: null, stream: null, free: () => freed++ });
  const closed = new HostMemoryResource().allocate(8);
  closed.close();
  await assertRejects(() => endpoint.sendMessage([counted, closed]), TypeError, "closed MemoryBuffer");
  await assertRejects(() => endpoint.sendMany([counted, closed]), TypeError, "closed MemoryBuffer");
  counted.close();
  assertEquals(freed, 1);
  if (!ucx.hasCuda) {
    const onDevice = MemoryBuffer.fromPointer(4096n, 8, { device: recordingDevice().device });
    await assertRejects(() => endpoint.sendMessage([onDevice]), TypeError, "Cannot send GPU memory");
  }
});
