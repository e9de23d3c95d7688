/** What can be sent and received into: memory of every kind, as it is, and nothing else. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { check, fc } from "../support/property.ts";

/** Kinds of JavaScript's memory, over a part of an ArrayBuffer of 64 bytes. */
const kinds = {
  Uint8Array: (buffer: ArrayBuffer, at: number, bytes: number) => new Uint8Array(buffer, at, bytes),
  DataView: (buffer: ArrayBuffer, at: number, bytes: number) => new DataView(buffer, at, bytes),
  Float64Array: (buffer: ArrayBuffer, at: number, bytes: number) => new Float64Array(buffer, at & ~7, bytes >> 3),
  Int16Array: (buffer: ArrayBuffer, at: number, bytes: number) => new Int16Array(buffer, at & ~1, bytes >> 1),
  BigInt64Array: (buffer: ArrayBuffer, at: number, bytes: number) => new BigInt64Array(buffer, at & ~7, bytes >> 3),
  ArrayBuffer: (buffer: ArrayBuffer) => buffer,
} as const;

const parts = fc.record({
  kind: fc.constantFrom(...Object.keys(kinds) as (keyof typeof kinds)[]), // its own keys
  at: fc.nat(30),
  bytes: fc.nat(30),
  content: fc.uint8Array({ minLength: 64, maxLength: 64 }),
});

function bytesOf(memory: ArrayBuffer | ArrayBufferView<ArrayBuffer>): Uint8Array {
  return ArrayBuffer.isView(memory)
    ? new Uint8Array(memory.buffer, memory.byteOffset, memory.byteLength)
    : new Uint8Array(memory);
}

test("JavaScript's memory of any kind is sent from its first byte to its last, and received into just there", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  await check(fc.asyncProperty(parts, parts, async (from, to) => {
    const source = kinds[from.kind](new Uint8Array(from.content).buffer, from.at, from.bytes);
    const into = new Uint8Array(to.content).buffer;
    const target = kinds[to.kind](into, to.at, to.bytes);
    const length = source.byteLength;
    if (length > target.byteLength) return;
    const model = new Uint8Array(into.slice(0));
    const offset = ArrayBuffer.isView(target) ? target.byteOffset : 0;
    model.set(bytesOf(source), offset);
    await endpoint.send(source);
    assertEquals((await receiver.recv(target)).length, length);
    assertEquals([...new Uint8Array(into)], [...model]);
  }));
});

/** An array of another library, which counts how often it was given out and given back. */
class Foreign {
  readonly buffer = new HostMemoryResource().allocate(4);
  readonly view = StridedMemoryView.fromBuffer(this.buffer, { shape: [4], dtype: "uint8" });
  __dlpack__ = (options?: object): unknown => Reflect.apply(this.view.__dlpack__, this.view, [options ?? {}]);
  __dlpack_device__ = (): unknown => this.view.__dlpack_device__();
}

test("another library's array is sent, and received into, as it is, and given back afterwards", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  const [from, to] = [new Foreign(), new Foreign()];
  from.buffer.bytes().set([1, 2, 3, 4]);
  const before = liveExports();
  for (let i = 0; i < 20; i++) {
    const receive = receiver.recv(to);
    await endpoint.send(from);
    assertEquals(await receive, { length: 4, tag: 0n });
    assertEquals([...to.buffer.bytes()], [1, 2, 3, 4]);
  }
  assertEquals(liveExports(), before);
  for (const { buffer } of [from, to]) buffer.close();
  for (const what of [{}, new Map(), () => {}]) {
    await assertRejects(() => endpoint.send(what), TypeError, "Cannot view");
    await assertRejects(() => receiver.recv(what), TypeError, "Cannot view");
  }
  await assertRejects(() => endpoint.send(new SharedArrayBuffer(8)), TypeError, "Cannot send shared memory");
  assert(receiver.probe() === null);
});
