/** Memory of every kind can be sent, and received into, unchanged; anything else is refused. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { Cuda } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { DType } from "../../src/layout/mod.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { takeMemory } from "../../src/ucx/message_memory.ts";
import { PoolStaging } from "../../src/ucx/pool_staging.ts";
import { TakenMemory } from "../../src/ucx/taken_memory.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { apart, meeting, pattern, type Placed, positionsOf } from "../support/arrays.ts";
import { laidOut } from "../support/laid_out.ts";
import { liars } from "../support/liars.ts";
import { check, fc } from "../support/property.ts";

/** Kinds of JavaScript memory, over a part of an ArrayBuffer of 64 bytes. */
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

test("JavaScript's memory of any kind is sent, and received into, from its first byte to its last", async () => {
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

const arrays = fc.tuple(fc.array(fc.nat(4), { maxLength: 4 }), fc.constantFrom("uint8", "int16", "float64"))
  .chain(([shape, dtype]) => {
    const itemsize = DType.from(dtype).itemsize;
    const placed = fc.oneof(apart(shape, itemsize), meeting(shape, itemsize));
    return fc.record({ dtype: fc.constant(dtype), placed, seed: fc.nat() });
  });

/** A view for a test, in memory of its own, and its elements in C order. */
function viewOf({ dtype, placed, seed }: { dtype: string; placed: Placed; seed: number }) {
  const buffer = new HostMemoryResource().allocate(placed.size);
  const bytes = pattern(placed.size, seed);
  buffer.bytes().set(bytes);
  const view = laidOut(buffer, { layout: placed.layout, offset: placed.offset, dtype });
  const { itemsize } = placed.layout;
  return { buffer, view, expected: positionsOf(placed).flatMap((at) => [...bytes.subarray(at, at + itemsize)]) };
}

test("a view of any layout is sent as its elements in C order, and not retained", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  await check(fc.asyncProperty(arrays, fc.boolean(), async (array, isSync) => {
    const { buffer, view, expected } = viewOf(array);
    using _ = buffer;
    const into = new Uint8Array(expected.length);
    const received = receiver.recv(into);
    if (isSync) endpoint.sendSync(view);
    else await endpoint.send(view);
    assertEquals((await received).length, expected.length);
    assertEquals([...into], expected);
    if (view.layout.isContiguousC) await endpoint.send(view, { copy: false }).then(() => receiver.recv(into));
    else await assertRejects(() => endpoint.send(view, { copy: false }), TypeError, "Allow a copy");
  }));
});

test("every call that sends packs a view that is not contiguous, or with copy: false refuses it and sends nothing", async () => {
  // sendArray, put and the raw stream packed it always, and knew no such option.
  using ucx = Ucx.open();
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const [endpoint, back] = await Promise.all([sender.connect(receiver.address), receiver.connect(sender.address)]);
  const memory = new Uint8Array(new ArrayBuffer(1 << 10));
  using region = receiver.register(memory);
  using remote = endpoint.remote(region.key);
  const messages = back.messages()[Symbol.asyncIterator]();
  type Options = { readonly copy?: boolean };
  /** How each sends a view, and how its bytes are received. */
  const ways: Record<
    string,
    [(view: StridedMemoryView, options: Options) => Promise<void>, (n: number) => Promise<Uint8Array>]
  > = {
    send: [(view, options) => endpoint.send(view, options), async (n) => {
      const into = new Uint8Array(n);
      await receiver.recv(into);
      return into;
    }],
    sendMany: [(view, options) => endpoint.sendMany([view], options), async () => {
      const [part] = await receiver.recvMany();
      assert(part !== undefined);
      using _part = part;
      return part.buffer.bytes().slice();
    }],
    sendMessage: [
      (view, options) => endpoint.sendMessage(view, options),
      async () => await (await messages.next()).value?.data ?? new Uint8Array(0),
    ],
    sendArray: [(view, options) => endpoint.sendArray(view, options), async () => {
      using array = await back.recvArray();
      return array.buffer.bytes().slice();
    }],
    put: [async (view, options) => {
      await endpoint.put(view, remote, 0, options);
      await endpoint.flush();
    }, (n) => Promise.resolve(memory.slice(0, n))],
    rawStream: [(view, options) => endpoint.rawStream.send(view, options), async (n) => {
      const into = new Uint8Array(n);
      if (n > 0) await back.rawStream.recvAll(into);
      return into;
    }],
  };
  await check(
    fc.asyncProperty(arrays, async (array) => {
      const { buffer, view, expected } = viewOf(array);
      using _ = buffer;
      fc.pre(expected.length <= memory.length);
      for (const [name, [send, receive]] of Object.entries(ways)) {
        const isSent = view.layout.isContiguousC;
        if (!isSent) await assertRejects(() => send(view, { copy: false }), TypeError, "Allow a copy", name);
        for (const options of isSent ? [{ copy: false }, {}] : [{ copy: true }, {}]) {
          const [received] = await Promise.all([name === "put" ? null : receive(expected.length), send(view, options)]);
          assertEquals([...received ?? await receive(expected.length)], expected, name);
        }
      }
    }),
    30,
  );
});

test("a buffer whose elements were copied is not retained after its message was sent", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  const memory = new HostMemoryResource().allocate(8);
  let freed = 0;
  const free = () => freed++;
  const buffer = MemoryBuffer.fromAllocation({ ptr: memory.ptr, size: 8, device: null, stream: null, free });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], strides: [2], dtype: "uint8" });
  await Promise.all([endpoint.send(view), worker.recv(new Uint8Array(4))]);
  buffer.close();
  assertEquals(freed, 1);
  memory.close();
});

/** Another library's array, which counts how often it was exported and returned. */
class Foreign {
  readonly buffer = new HostMemoryResource().allocate(4);
  readonly view = StridedMemoryView.fromBuffer(this.buffer, { shape: [4], dtype: "uint8" });
  __dlpack__ = (options?: object): unknown => Reflect.apply(this.view.__dlpack__, this.view, [options ?? {}]);
  __dlpack_device__ = (): unknown => this.view.__dlpack_device__();
}

test("another library's array is sent, and received into, in place, and released afterwards", async () => {
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
    // @ts-expect-error -- no array
    await assertRejects(() => endpoint.send(what), TypeError, "Cannot view");
    // @ts-expect-error -- no array
    await assertRejects(() => receiver.recv(what), TypeError, "Cannot view");
  }
  // @ts-expect-error -- shared memory
  await assertRejects(() => endpoint.send(new SharedArrayBuffer(8)), TypeError, "Cannot send shared memory");
  const ofContext = runInNewContext("const array = new Int8Array(8); array.buffer; array") as Int8Array;
  const ofWhat = "an array of another JavaScript context";
  await assertRejects(() => endpoint.send(ofContext), TypeError, `Cannot send ${ofWhat}`);
  await assertRejects(() => receiver.recv(ofContext), TypeError, `Cannot receive into ${ofWhat}`);
  assert(receiver.probe() === null);
});

test("UCX gets a GPU's memory with a context current, in which it can make progress", () => {
  const cuda = Cuda.simulate();
  const device = cuda.device(0);
  using arena = new NativeArena();
  const current = arena.out("ptr");
  const isCurrent = () => {
    assertEquals(cuda.driver.context.cuCtxGetCurrent(current.$address), 0);
    return current.value === device.context;
  };
  using buffer = device.memory.allocate(16, { stream: device.defaultStream });
  using host = new HostMemoryResource().allocate(16);
  const take = (what: MemoryBuffer) => {
    const memory = new TakenMemory();
    takeMemory(memory, what, "send", new PoolStaging());
    memory.release();
  };
  take(host);
  assertEquals(isCurrent(), false);
  take(buffer);
  assertEquals(isCurrent(), true);
});

test("of an array that tells lies about its memory, nothing else is sent or written", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  for (const make of Object.values(liars)) {
    const [liar, into] = [make(), new Uint8Array(100)];
    assertEquals((await Promise.all([worker.recv(into), endpoint.send(liar)]))[0].length, 8);
    const tooLong = assertRejects(() => worker.recv(liar), Error, "longer than the memory");
    await Promise.all([tooLong, endpoint.send(new Uint8Array(9))]);
  }
});
