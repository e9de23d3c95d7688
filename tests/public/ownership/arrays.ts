/**
 * Owners of arrays that are exported to another library and imported from one.
 *
 * @module
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import {
  ArrowArray,
  arrowField,
  ArrowStream,
  Cuda,
  ExchangeError,
  liveExports,
  StridedMemoryView,
} from "../../../mod.ts";
import { exportArrowStream } from "../../../src/public/arrow.ts";
import { callDeleter } from "../../../src/dlpack/tensor.ts";
import { describing, viewOf } from "./memory.ts";
import { CountedMemory, type Dropped, type OwnershipRow } from "./row.ts";

/** Uses a view whose owner closes the buffer right after: only a pin keeps it alive. */
function lending<T>(memory: CountedMemory, use: (view: StridedMemoryView) => T): T {
  using buffer = memory.allocate(16);
  return use(viewOf(buffer));
}

function droppedExports(use: (view: StridedMemoryView) => unknown): Dropped {
  const memory = new CountedMemory();
  return { once: () => void lending(memory, use), ended: () => memory.freed };
}

/** A loan ends when it is closed, and only then. */
function endsByClose(use: (view: StridedMemoryView) => Disposable): void {
  const memory = new CountedMemory();
  const lent = lending(memory, use);
  liveExports();
  assertEquals(memory.freed, 0);
  lent[Symbol.dispose]();
  lent[Symbol.dispose]();
  liveExports();
  assertEquals(memory.freed, 1);
}

/** An export that an import refuses remains the caller's. */
function staysOnError(exported: { readonly ptr: bigint; close(): void }, take: () => unknown): void {
  assertThrows(take, ExchangeError);
  assert(exported.ptr !== 0n); // not taken
  exported.close();
}

export const arrayRows: Readonly<Record<string, OwnershipRow>> = {
  "`view.toDlpack()`": {
    ends: () => endsByClose((view) => view.toDlpack()),
    drop: () => droppedExports((view) => view.toDlpack()),
  },
  "`tensor.take()`": {
    ends() {
      const memory = new CountedMemory();
      const address = lending(memory, (view) => view.toDlpack().take());
      liveExports();
      assertEquals(memory.freed, 0);
      callDeleter(address, true);
      assertEquals(liveExports(), 0);
      assertEquals(memory.freed, 1);
    },
    drop: (stack) => {
      const memory = new CountedMemory();
      const taken: bigint[] = [];
      stack.defer(() => taken.forEach((address) => callDeleter(address, true)));
      const once = () => void taken.push(lending(memory, (view) => view.toDlpack().take()));
      return { once, ended: () => memory.freed };
    },
  },
  "`StridedMemoryView.fromDlpack(source)`": {
    ends() {
      endsByClose((view) => StridedMemoryView.fromDlpack(view));
      endsByClose((view) => StridedMemoryView.fromDlpack(view.toDlpack()));
      using cuda = Cuda.simulate();
      using buffer = cuda.device(0).memory.allocate(16);
      const tensor = viewOf(buffer).toDlpack();
      staysOnError(tensor, () => StridedMemoryView.fromDlpack(tensor)); // the call does not say where it will be used
    },
    drop: () => droppedExports((view) => StridedMemoryView.fromDlpack(view)),
  },
  "`StridedMemoryView.fromCudaArrayInterface(object)`": {
    ends() {
      using cuda = Cuda.simulate({ schedule: "latest" });
      const device = cuda.device(0);
      using producer = device.createStream();
      using consumer = device.createStream();
      using buffer = device.memory.allocate(16, { stream: producer });
      const view = StridedMemoryView.fromCudaArrayInterface(viewOf(buffer), { stream: consumer });
      view.fill(1); // on its home stream, the consumer
      view.close();
      producer.synchronize(); // which is ordered after the consumer's work
      assert(consumer.isDone && !buffer.isClosed);
      assertThrows(() => view.ptr, TypeError, "closed");
    },
    drop: (stack) => {
      const cuda = stack.use(Cuda.simulate());
      const { make, collected } = describing("__cuda_array_interface__", cuda);
      const stream = stack.use(cuda.device(0).createStream());
      return {
        once: () => void StridedMemoryView.fromCudaArrayInterface(make(), { stream }),
        ended: () => collected.count,
      };
    },
  },
  "`StridedMemoryView.fromArrayInterface(object)`": {
    ends() {
      const { make } = describing("__array_interface__");
      const view = StridedMemoryView.fromArrayInterface(make());
      view.close();
      assertEquals(view.toArray().length, 4);
    },
    drop: () => {
      const { make, collected } = describing("__array_interface__");
      return { once: () => void StridedMemoryView.fromArrayInterface(make()), ended: () => collected.count };
    },
  },
  "`view.toCudaArrayInterface()`": {
    ends() {
      using cuda = Cuda.simulate();
      const { memory } = cuda.device(0);
      const buffer = memory.allocate(16);
      viewOf(buffer).toCudaArrayInterface();
      buffer.close(); // nothing is pinned
      cuda.device(0).synchronize();
      assertEquals(memory.pool.use.used, 0);
      const host = new CountedMemory();
      lending(host, (view) => view.__array_interface__);
      assertEquals(host.freed, 1);
    },
  },
  "`view.toArrowDevice()`": {
    ends() {
      endsByClose((view) => view.toArrowDevice());
      endsByClose((view) => {
        using array = ArrowArray.from(view);
        return array.toArrowDevice();
      });
    },
    drop: () => droppedExports((view) => view.toArrowDevice()),
  },
  "`exported.take()`": {
    ends() {
      const memory = new CountedMemory();
      const { schema, deviceArray } = lending(memory, (view) => view.toArrowDevice().take());
      liveExports();
      assertEquals(memory.freed, 0);
      StridedMemoryView.fromArrowDevice({ schema, deviceArray }).close(); // a consumer calls both callbacks
      assertEquals(liveExports(), 0);
      assertEquals(memory.freed, 1);
    },
    drop: (stack) => {
      const memory = new CountedMemory();
      const taken: { readonly schema: bigint; readonly deviceArray: bigint }[] = [];
      stack.defer(() => taken.forEach((one) => StridedMemoryView.fromArrowDevice(one).close()));
      const once = () => void taken.push(lending(memory, (view) => view.toArrowDevice().take()));
      return { once, ended: () => memory.freed };
    },
  },
  "`StridedMemoryView.fromArrowDevice(source)`": {
    ends() {
      endsByClose((view) => StridedMemoryView.fromArrowDevice(view));
      const exported = new ArrowArray({ field: arrowField("n"), length: 2, buffers: [] }).toArrowDevice();
      staysOnError(exported, () => StridedMemoryView.fromArrowDevice(exported)); // nulls are not numbers
    },
    drop: () => droppedExports((view) => StridedMemoryView.fromArrowDevice(view)),
  },
  "`ArrowArray.from(source)`": {
    ends() {
      endsByClose((view) => ArrowArray.from(view));
      using array = ArrowArray.from(StridedMemoryView.arange(4));
      const slice = array.sliced(1);
      slice.close();
      assertEquals(slice.get(0), 1);
      array.close();
      assertThrows(() => slice.get(0), TypeError, "closed");
    },
    drop: () => droppedExports((view) => ArrowArray.from(view)),
  },
  "`ArrowStream.from(source)`": {
    ends() {
      const memory = new CountedMemory();
      const stream = lending(memory, streamOf);
      const first = stream.next();
      stream.close();
      liveExports();
      assertEquals([memory.freed, first?.length], [0, 4]);
      first?.close();
      liveExports();
      assertEquals(memory.freed, 1);
    },
    drop: () => droppedExports(streamOf),
  },
  "`exportArrowStream(arrays)`": {
    ends: () => endsByClose((view) => exportOf(view)),
    drop: () => droppedExports((view) => exportOf(view)),
  },
};

function exportOf(view: StridedMemoryView) {
  using array = ArrowArray.from(view);
  return exportArrowStream([array]);
}

function streamOf(view: StridedMemoryView): ArrowStream {
  return ArrowStream.from({ stream: exportOf(view).take() });
}
