/**
 * Lending an array to another stream for a while.
 *
 * @module
 */
import { checkOpenStream } from "../device/check_device.ts";
import type { CudaStream } from "../device/stream.ts";
import { DeferredFinalizer, type FinalizerState } from "../ffi/deferred_finalizer.ts";
import { reportUncaught, wantsLeakReports } from "../ffi/report_uncaught.ts";
import { consumerWaits, producerWaits } from "./order.ts";
import type { OrderedMemory } from "./ordered_memory.ts";

/** All that the end of a lease needs, and nothing that leads back to the lease. */
interface LeaseState extends FinalizerState {
  readonly buffer: OrderedMemory;
  readonly stream: CudaStream;
  closed: boolean;
}

function end(state: LeaseState): void {
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

/** Leases that were dropped end all the same, or the memory would be lent for ever. */
const finalizer = new DeferredFinalizer<LeaseState>((state) => {
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
 * A loan of an array to a stream. What the array's home stream held when it began comes before the stream's work, and what
 * the home stream gets afterwards comes after that work. The memory is pinned meanwhile.
 */
export class OrderedLease<T extends { readonly buffer: OrderedMemory }> {
  /** The array. */
  readonly view: T;
  /** The stream that may use it. */
  readonly stream: CudaStream;
  readonly #state: LeaseState;

  /**
   * Begins the loan.
   *
   * @throws {TypeError} if the buffer or the stream is closed
   */
  constructor(view: T, stream: CudaStream) {
    const { buffer } = view;
    checkOpenStream(stream, "Cannot lend to a stream");
    stream.retain(); // a closed stream is an error before anything is enqueued
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
    this.view = view;
    this.stream = stream;
    this.#state = { buffer, stream, closed: false };
    finalizer.register(this, this.#state);
  }

  /** Whether the lease has ended. */
  get isClosed(): boolean {
    return this.#state.closed;
  }

  /** Ends the lease: what was enqueued on its stream so far comes before whatever the home stream gets from now on. */
  close(): void {
    if (!this.#state.closed) end(this.#state);
  }

  /** Ends the lease. */
  [Symbol.dispose](): void {
    this.close();
  }
}
