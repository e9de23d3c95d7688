/**
 * Lending memory to another stream for a while.
 *
 * @module
 */
import { checkOpenStream, type CudaStream } from "../device/mod.ts";
import { DeferredFinalizer, type FinalizerState, reportUncaught, wantsLeakReports } from "../ffi/mod.ts";
import { consumerWaits, producerWaits } from "./waits.ts";
import type { OrderedMemory } from "./ordered_memory.ts";

/** All that ending a loan needs, with no reference back to the loan. */
interface LoanState extends FinalizerState {
  readonly buffer: OrderedMemory;
  readonly stream: CudaStream;
  closed: boolean;
}

// law order/loan/end: order/lease, device/late_streams, order/refusals, order/programs
function end(state: LoanState): void {
  const { buffer, stream } = state;
  state.closed = true;
  const home = buffer.stream;
  try {
    if (home !== null) producerWaits(stream.orSuccessor, home);
  } finally {
    buffer.unpin();
    stream.release();
  }
}

/** Ends loans whose lease was dropped: otherwise the memory would stay lent for ever. */
const finalizer = new DeferredFinalizer<LoanState>((state) => {
  const { size } = state.buffer;
  if (wantsLeakReports()) {
    console.error(`Causeway: a Lease of ${size} bytes was never closed; ended by garbage collection`);
  }
  try {
    end(state);
  } catch (error) {
    reportUncaught(`ending a Lease of ${size} bytes that was collected`, error);
  }
});

/**
 * Memory lent to a stream. What was enqueued on its home stream when the loan began comes before the stream's work, and
 * what is enqueued there afterwards comes after that work. The memory is pinned meanwhile.
 */
export class Loan {
  readonly #state: LoanState;

  // law order/Loan.constructor: order/lease, device/late_streams, order/refusals, order/programs,
  //   memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource, memory/driver_memory_resource,
  //   memory/collection, sim/behaviours, view/strided_memory_view, memory/memory_programs
  /**
   * Begins the loan.
   *
   * @throws {TypeError} if the buffer or the stream is closed
   */
  constructor(buffer: OrderedMemory, stream: CudaStream) {
    checkOpenStream(stream, "Cannot lend to a stream");
    stream.retain(); // a closed stream must fail before anything is enqueued
    let isPinned = false;
    try {
      buffer.pin();
      isPinned = true;
      consumerWaits(buffer, stream);
    } catch (error) {
      if (isPinned) buffer.unpin();
      stream.release();
      throw error;
    }
    this.#state = { buffer, stream, closed: false };
    finalizer.register(this, this.#state);
  }

  /** Whether the loan has ended. */
  get isEnded(): boolean {
    return this.#state.closed;
  }

  // law order/Loan.end: order/lease, device/late_streams, order/refusals, order/programs
  /** Ends the loan. Ending it twice is harmless. */
  end(): void {
    if (!this.#state.closed) end(this.#state);
  }
}
