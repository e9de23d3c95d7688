/**
 * What frees the memory of a buffer. It outlives the buffer, which may be collected without having been closed.
 *
 * @module
 */
import { afterCaptures, type CudaDevice, type CudaStream, isCapturing } from "../device/mod.ts";
import type { CudaDriver } from "../driver/mod.ts";
import { DeferredFinalizer, type FinalizerState, reportUncaught, wantsLeakReports } from "../ffi/mod.ts";
import { orderStreams } from "../order/mod.ts";

/** Frees memory. `argument` is what the buffer was made with. */
export type Free = (ptr: bigint, stream: CudaStream | null, argument: unknown) => void;

/** All that freeing a buffer needs. It must not lead back to the buffer. */
export interface BufferState extends FinalizerState {
  readonly ptr: bigint;
  readonly size: number;
  readonly free: Free;
  /** The third argument of `free`. */
  readonly argument: unknown;
  /** The driver that knows the memory; null for ordinary host memory. */
  readonly driver: CudaDriver | null;
  /**
   * The device in whose context the memory is, retained: it is freed there. Null for memory that someone else frees.
   */
  retained: CudaDevice | null;
  /** The home stream, retained: it must outlive the memory that is freed on it. */
  stream: CudaStream | null;
  /** What keeps foreign memory alive, until the end. */
  owner: unknown;
  /** How often the memory is pinned. */
  pins: number;
  /** Whether the buffer is closed, or was collected. */
  closed: boolean;
}

// law memory/finalizer: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
const finalizer = new DeferredFinalizer<BufferState>((state) => {
  if (wantsLeakReports()) {
    console.error(`Causeway: a MemoryBuffer of ${state.size} bytes was never closed; freed by garbage collection`);
  }
  state.closed = true;
  try {
    freeIfUnused(state);
  } catch (error) {
    reportUncaught(`freeing a MemoryBuffer of ${state.size} bytes that was collected`, error);
  }
});

/** Has the memory freed, on its home stream, if the buffer is collected without having been closed. */
export function freeIfDropped(buffer: WeakKey, state: BufferState): void {
  finalizer.register(buffer, state);
}

// law memory/freeIfUnused: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
/** Frees closed memory without pins. Each of its callers makes that true at most once. */
export function freeIfUnused(state: BufferState): void {
  if (!state.closed || state.pins > 0) return;
  const { driver } = state;
  // A free must neither become part of a graph nor invalidate its capture.
  if (driver !== null && isCapturing(driver)) freeAfterCaptures(driver, state);
  else freeNow(state);
}

/** Apart: a function that has another one in it makes room for what they share each time it is called. */
function freeAfterCaptures(driver: CudaDriver, state: BufferState): void {
  afterCaptures(driver, () => freeNow(state));
}

// law memory/freeNow: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
function freeNow(state: BufferState): void {
  state.owner = undefined;
  try {
    state.free(state.ptr, state.stream?.orSuccessor ?? null, state.argument);
    if (state.stream !== null) state.retained?.noteFreeOn(state.stream.device);
  } finally {
    // The memory's device first: its context must not go before the free is over, which the home's can still tell.
    try {
      state.retained?.release();
    } finally {
      state.stream?.release();
    }
  }
}

// law memory/moveHome: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
/** Changes the home stream of memory: work on the one before comes before work on it. */
export function moveHome(state: BufferState, before: CudaStream | null, stream: CudaStream): void {
  const { stream: kept } = state;
  stream.retain();
  try {
    orderStreams(before, stream);
  } catch (error) {
    stream.release();
    throw error;
  }
  state.stream = stream; // first: what the driver says to the end of the former home must not keep the new one
  kept?.release();
}

/** One pin, which ends once however often it is disposed of. It keeps no buffer from being collected. */
export class Pin implements Disposable {
  #state: BufferState | null;

  /** @param state memory that has just been pinned */
  constructor(state: BufferState) {
    this.#state = state;
  }

  // law memory/Pin.Symbol.dispose: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
  //   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
  //   memory/memory_programs
  /** Unpins the memory. */
  [Symbol.dispose](): void {
    const state = this.#state;
    if (state === null) return;
    this.#state = null;
    state.pins--;
    freeIfUnused(state);
  }
}
