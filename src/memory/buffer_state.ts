/**
 * The state that frees the memory of a buffer. It outlives the buffer, which may be collected without having been
 * closed.
 *
 * @module
 */
import { afterCaptures, type CudaDevice, type CudaStream, isCapturing } from "../device/mod.ts";
import type { CudaDriver } from "../driver/mod.ts";
import { DeferredFinalizer, type FinalizerState, reportUncaught, wantsLeakReports } from "../ffi/mod.ts";
import { orderStreams } from "../order/mod.ts";

/** Frees memory. `argument` is the value that the buffer was made with. */
export type Free = (ptr: bigint, stream: CudaStream | null, argument: unknown) => void;

/** Another buffer. */
interface Lender {
  pin(): void;
  unpin(): void;
}

/** All that freeing a buffer needs, with no reference back to the buffer. */
export interface BufferState extends FinalizerState {
  readonly ptr: bigint;
  readonly size: number;
  readonly free: Free;
  /** The third argument of `free`. */
  readonly argument: unknown;
  /** The driver that knows the memory; null for ordinary host memory. */
  readonly driver: CudaDriver | null;
  /** The device in whose context the memory is freed, retained. Null for memory that is not freed here. */
  retained: CudaDevice | null;
  /** The home stream, retained: it must outlive the memory freed on it. */
  stream: CudaStream | null;
  /** What keeps foreign memory alive until it is freed. */
  owner: unknown;
  /**
   * The buffer whose memory this is a part of, pinned as often as this one; null if it is no other's. Undefined before
   * the first pin.
   */
  lender: Lender | null | undefined;
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

/** Makes the finalizer free the memory, on its home stream, if the buffer is collected without having been closed. */
export function freeIfDropped(buffer: WeakKey, state: BufferState): void {
  finalizer.register(buffer, state);
}

// law memory/freeIfUnused: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
/** Frees closed memory without pins. Its callers make that condition true at most once. */
export function freeIfUnused(state: BufferState): void {
  if (!state.closed || state.pins > 0) return;
  const { driver } = state;
  // A free must neither become part of a graph nor invalidate its capture.
  if (driver !== null && isCapturing(driver)) freeAfterCaptures(driver, state);
  else freeNow(state);
}

/** Separate: a function that contains a closure allocates their shared context on every call. */
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
    // Releases the memory's device first: its context must not go away before the free is done, which the home stream's
    // device can still tell.
    try {
      state.retained?.release();
    } finally {
      state.stream?.release();
    }
  }
}

// law memory/unpin: memory/memory_buffer, memory/collection, memory/lender
/** Ends one pin of memory. */
export function unpin(state: BufferState): void {
  state.pins--;
  try {
    freeIfUnused(state);
  } finally {
    state.lender?.unpin();
  }
}

// law memory/moveHome: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
/** Changes the home stream of memory: work on the old one comes before work on the new one. */
export function moveHome(state: BufferState, before: CudaStream | null, stream: CudaStream): void {
  const { stream: kept } = state;
  stream.retain();
  try {
    orderStreams(before, stream);
  } catch (error) {
    stream.release();
    throw error;
  }
  state.stream = stream; // first: an error when the old home is released must not discard the new one
  kept?.release();
}

/** One pin, which ends once however often it is disposed. It does not keep the buffer from being collected. */
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
    unpin(state);
  }
}
