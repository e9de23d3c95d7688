/**
 * What programs may write, to the compiler: right uses compile without a cast, and uses that can only fail do not. What
 * it knows of dtypes is in `view/types_test.ts`. Most of this is compiled only.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import {
  type ArrowArray,
  type ArrowDeviceArray,
  Cuda,
  type CudaDevice,
  type CudaStream,
  type DlpackTensor,
  HostMemoryResource,
  MemoryBuffer,
  MemoryResource,
  type PyObject,
  type Python,
  type Receivable,
  type Sendable,
  StridedMemoryView,
  type UcxEndpoint,
  type UcxListener,
  type UcxWorker,
} from "../../mod.ts";
import { type AllocateOptions, checkSize } from "../../src/public/cuda.ts";
import type { DlpackSource } from "../../src/public/dlpack.ts";
import type { MemoryChannel } from "../../src/public/sharing.ts";
import type { VortexArray, VortexFile } from "../../src/public/vortex.ts";

/** Takes programs that are compiled, and not run. */
function compiled(...programs: readonly ((...args: never[]) => unknown)[]): void {
  assertEquals(programs.every((program) => typeof program === "function"), true);
}

test("what comes out of a Python object in a loop can be used as what its attributes are", () => {
  compiled(
    (loader: PyObject) => Array.from(loader, ([images, labels]) => images.sum() + labels.sum()),
    async (loader: PyObject) => {
      for await (const batch of loader) batch.images.sum();
    },
  );
});

test("work that ends when it returns may return anything but a promise", () => {
  using cuda = Cuda.simulate();
  const count: number = cuda.device(0).withContext(() => 3);
  assertEquals(count, 3);
  compiled(
    (python: Python, numpy: PyObject): [number, "a" | "b", number[], PyObject, unknown] => [
      python.locked(() => 3),
      python.locked(() => (python.version === "3" ? "a" : "b")),
      python.locked(() => [numpy.length, 2]),
      python.locked(() => numpy.$call()),
      python.locked((): unknown => JSON.parse("1")),
    ],
    (python: Python, lock: PyObject): number | undefined =>
      python.with(lock, (held) => python.locked(() => held.count)),
    // Who passes work on asks the same of it.
    <T>(python: Python, work: () => T extends PromiseLike<unknown> ? never : T): T => python.locked(work),
    (stream: CudaStream, work: () => void) => [stream.capture(work), stream.capture(() => stream.record())],
    // @ts-expect-error -- a promise
    (python: Python) => python.locked(async () => await Promise.resolve()),
    // @ts-expect-error -- it may be one
    (python: Python) => python.locked(() => (python.version === "3" ? Promise.resolve(3) : 3)),
    // @ts-expect-error -- a promise
    (python: Python, lock: PyObject) => python.with(lock, async () => await Promise.resolve()),
    // @ts-expect-error -- a promise
    (device: CudaDevice) => device.withContext(async () => await Promise.resolve()),
    // @ts-expect-error -- a promise
    (stream: CudaStream) => stream.capture(async () => await Promise.resolve()),
  );
});

/** A library's array, as its own types may describe it. */
interface Tensor {
  readonly shape: readonly number[];
  __dlpack__(stream?: number): unknown;
}

test("arrays are sent, whoever has made them, and nothing else", () => {
  compiled(
    (view: StridedMemoryView<"int8">, { buffer }: StridedMemoryView): Sendable[] => [view, buffer],
    (bytes: Uint8Array, array: Float32Array<ArrayBuffer>, view: DataView): Receivable[] => [bytes, array, view],
    (array: ArrayBuffer, node: ArrayBufferView, object: PyObject): Sendable[] => [array, node, object],
    (source: DlpackSource, tensor: DlpackTensor, other: Tensor): Sendable[] => [source, tensor, other],
    (one: ArrowArray, other: ArrowDeviceArray, vortex: VortexArray): Sendable[] => [one, other, vortex],
    (described: { get __cuda_array_interface__(): unknown }): Sendable => described,
    (endpoint: UcxEndpoint, numpy: PyObject) => endpoint.send(numpy.$call(3)),
    (endpoint: UcxEndpoint, parts: readonly Uint8Array[]) => [endpoint.sendMany(parts), endpoint.sendMessage(parts)],
    // @ts-expect-error -- numbers: a typed array has bytes
    (endpoint: UcxEndpoint) => endpoint.send([1, 2, 3]),
    // @ts-expect-error -- no array
    (endpoint: UcxEndpoint) => endpoint.send({ text: "hello" }),
    // @ts-expect-error -- not awaited
    (endpoint: UcxEndpoint, bytes: Promise<Uint8Array>) => endpoint.send(bytes),
    // @ts-expect-error -- not awaited
    (worker: UcxWorker, bytes: Promise<Uint8Array>) => worker.recv(bytes),
    // @ts-expect-error -- no array
    (worker: UcxWorker) => worker.register(new Map()),
    // @ts-expect-error -- a function
    (endpoint: UcxEndpoint) => endpoint.sendMany([() => new Uint8Array(3)]),
    // @ts-expect-error -- shared memory
    (endpoint: UcxEndpoint) => endpoint.send(new SharedArrayBuffer(3)),
  );
});

test("an allocator of one's own is a subclass, to the compiler, too", () => {
  class Counting extends MemoryResource {
    readonly isDeviceAccessible = false;
    readonly isHostAccessible = true;
    readonly #inner = new HostMemoryResource();
    bytes = 0;

    override allocate(bytes: number, options: AllocateOptions = {}): MemoryBuffer {
      checkSize(bytes);
      const owner = this.#inner.allocate(bytes, options);
      this.bytes += bytes;
      const free = () => {
        this.bytes -= bytes;
        owner.close();
      };
      return MemoryBuffer.fromAllocation({ ptr: owner.ptr, size: bytes, device: null, stream: null, owner, free });
    }
  }
  const memory = new Counting();
  {
    using buffer = memory.allocate(8);
    using copy = StridedMemoryView.fromBuffer(buffer, { shape: [2], dtype: "float32" }).copy({ memory });
    assertEquals([copy.nbytes, memory.bytes], [8, 16]);
  }
  assertEquals(memory.bytes, 0);
  const { allocate } = new HostMemoryResource();
  // @ts-expect-error -- not a subclass
  const alike: MemoryResource = { isDeviceAccessible: false, isHostAccessible: true, allocate };
  assertThrows(() => StridedMemoryView.zeros([2], { memory: alike }), TypeError, "expected a MemoryResource");
  compiled(() => {
    // @ts-expect-error -- nor is one that implements it
    class Alike implements MemoryResource {
      readonly isDeviceAccessible = false;
      readonly isHostAccessible = true;
      readonly allocate = allocate;
    }
    return new Alike();
  });
});

test("a signal that a program may have been given is passed on as it is", () => {
  compiled(
    (python: Python, function_: PyObject, signal?: AbortSignal) => python.async(function_, { signal }),
    (worker: UcxWorker, signal?: AbortSignal) => worker.connect(worker.address, { signal }),
    (endpoint: UcxEndpoint, signal?: AbortSignal) => endpoint.close({ signal }),
    (listener: UcxListener, signal?: AbortSignal) => listener.accept({ signal }),
    (endpoint: UcxEndpoint, signal?: AbortSignal) => [endpoint.messages({ signal }), endpoint.recvMany({ signal })],
    (channel: MemoryChannel, signal?: AbortSignal) => channel.receive({ signal }),
    (file: VortexFile, signal?: AbortSignal) => file.scan({ signal }),
  );
});
