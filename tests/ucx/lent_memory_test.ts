/**
 * Memory that UCX uses although it was not given as what owns it: the bytes of a buffer, which closing the buffer
 * frees, and a view of an ArrayBuffer, which JavaScript can transfer.
 */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Cuda, HostMemoryResource, MemoryBuffer, PinnedMemoryResource, StridedMemoryView, Ucx } from "../../mod.ts";
import { contentOf } from "../support/ucx_messages.ts";

/** Larger than UCX buffers unasked: it stays at the sender until the other side asks for it. */
const big = 1 << 20;

/** A buffer that counts how often it is freed, which leaves the memory as it is. */
function counted() {
  const backing = new HostMemoryResource().allocate(big);
  const counts = { frees: 0 };
  const free = () => void counts.frees++;
  const buffer = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size: big, device: null, stream: null, free });
  return { buffer, counts, backing };
}

/** The memory of a buffer, given by what its `bytes()` returned. */
const guises = {
  "an array": (buffer: MemoryBuffer) => buffer.bytes(),
  "an ArrayBuffer": (buffer: MemoryBuffer) => buffer.bytes().buffer,
  "a DataView": (buffer: MemoryBuffer) => new DataView(buffer.bytes().buffer),
  "a view": (buffer: MemoryBuffer) => StridedMemoryView.fromTypedArray(buffer.bytes()),
} as const;

for (const [name, guise] of Object.entries(guises)) {
  test(`a buffer that is closed while UCX has its bytes is freed afterwards: ${name}`, async () => {
    using ucx = Ucx.open({ config: { TLS: "tcp" } });
    await using alice = ucx.createWorker({ progress: "event" });
    await using bob = ucx.createWorker({ progress: "event" });
    const toBob = await alice.connect(bob.address);
    const [from, into, over] = [counted(), counted(), counted()];
    from.buffer.bytes().set(contentOf(1, big));
    const sent = toBob.send(guise(from.buffer), { tag: 1n });
    const received = bob.recv(guise(into.buffer), { tag: 1n });
    const region = bob.register(guise(over.buffer));
    for (const { buffer } of [from, into, over]) buffer.close();
    assertEquals([from, into, over].map(({ counts }) => counts.frees), [0, 0, 0]);
    assertEquals((await received).length, big);
    await sent;
    assertEquals([from, into, over].map(({ counts }) => counts.frees), [1, 1, 0]);
    assertEquals(into.backing.bytes(), contentOf(1, big));
    region.close();
    assertEquals(over.counts.frees, 1);
    for (const { backing } of [from, into, over]) backing.close();
  });
}

/** JavaScript's own memory, given as what can be sent but is not an ArrayBuffer. */
const owned = {
  "a view": (array: Uint8Array<ArrayBuffer>) => StridedMemoryView.fromTypedArray(array),
  "a buffer": ({ buffer }: Uint8Array<ArrayBuffer>) => MemoryBuffer.fromArrayBuffer(buffer),
  "an array of a buffer": ({ buffer }: Uint8Array<ArrayBuffer>) => MemoryBuffer.fromArrayBuffer(buffer).bytes(),
} as const;

for (const [name, guise] of Object.entries(owned)) {
  test(`JavaScript's memory that is transferred while UCX has it is noticed: ${name}`, async () => {
    using ucx = Ucx.open({ config: { TLS: "tcp" } });
    await using alice = ucx.createWorker({ progress: "event" });
    await using bob = ucx.createWorker({ progress: "event" });
    const toBob = await alice.connect(bob.address);
    const fresh = () => new Uint8Array(new ArrayBuffer(big));
    await Promise.all([toBob.send(fresh()), bob.recv(fresh())]);

    // A receive that waits for its message is cancelled: the next one gets it.
    const first = fresh();
    const cancelled = assertRejects(() => bob.recv(guise(first), { tag: 2n }), TypeError, "transferred");
    await pause(20); // the worker sleeps
    const moved = new Uint8Array(first.buffer.transfer());
    const sent = toBob.send(contentOf(2, big), { tag: 2n });
    await cancelled;
    const next = fresh();
    await Promise.all([sent, bob.recv(next, { tag: 2n, timeout: 30_000 })]);
    assertEquals(next, contentOf(2, big));
    assert(moved.every((byte) => byte === 0), "transferred memory was written to");

    // A send in flight is an error.
    const second = fresh();
    const failed = assertRejects(() => toBob.send(guise(second), { tag: 3n }), TypeError, "transferred");
    const kept = second.buffer.transfer();
    await Promise.all([failed, bob.recv(fresh(), { tag: 3n })]);
    assertEquals(kept.byteLength, big);

    // One that waits for its turn never begins.
    using cuda = Cuda.simulate({ schedule: "latest" });
    using stream = cuda.device(0).createStream();
    using pinned = new PinnedMemoryResource(cuda.device(0)).allocate(64, { stream });
    pinned.fill(7, { stream });
    const before = toBob.send(pinned, { tag: 4n });
    const third = fresh();
    const never = assertRejects(() => toBob.send(guise(third), { tag: 5n }), TypeError, "transferred");
    third.buffer.transfer();
    await Promise.all([before, bob.recv(fresh(), { tag: 4n }), never]);
    await toBob.flush();
    assertEquals(bob.probe(5n), null);

    // Once UCX is done with it, it may be transferred; the same operation then has other memory, or none.
    const fourth = fresh();
    await Promise.all([toBob.send(guise(fourth), { tag: 6n }), bob.recv(fresh(), { tag: 6n })]);
    fourth.buffer.transfer();
    for (const size of [8, 0]) {
      const [from, into] = [1, 2].map(() => StridedMemoryView.fromTypedArray(new Uint8Array(size)));
      assert(from !== undefined && into !== undefined);
      await Promise.all([toBob.send(from, { tag: 7n }), bob.recv(into, { tag: 7n })]);
      using buffer = new HostMemoryResource().allocate(8);
      await Promise.all([toBob.send(buffer, { tag: 8n }), bob.recv(new Uint8Array(8), { tag: 8n })]);
    }
  });
}

test("a part of a buffer's bytes is that part", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using alice = ucx.createWorker();
  await using bob = ucx.createWorker();
  const toBob = await alice.connect(bob.address);
  using from = new HostMemoryResource().allocate(64);
  using into = new HostMemoryResource().allocate(64);
  from.bytes().set(contentOf(3, 64));
  into.fill(0);
  const words = new Uint16Array(into.bytes().buffer, 32, 8);
  await Promise.all([toBob.send(from.bytes().subarray(8, 24)), bob.recv(words)]);
  const expected = new Uint8Array(64);
  expected.set(contentOf(3, 64).subarray(8, 24), 32);
  assertEquals(into.bytes(), expected);
});
