/**
 * Lending an array to another stream for a while.
 *
 * @module
 */
import { checkOpenStream } from "../device/check_device.ts";
import type { CudaStream } from "../device/stream.ts";
import { DeferredFinalizer, type FinalizerState } from "../ffi/deferred_finalizer.ts";
import { reportUncaught, wantsLeakReports } from "../ffi/report_uncaught.ts";
import type { MemoryBuffer } from "../memory/memory_buffer.ts";
import type { StridedMemoryView } from "../view/strided_memory_view.ts";
import { orderBack, orderConsumer } from "./order.ts";

/** What is lent to whom: all that the end of a loan needs, and nothing that leads back to the lease. */
interface Loan extends FinalizerState {
  readonly buffer: MemoryBuffer;
  readonly stream: CudaStream;
  readonly unpin: () => void;
  closed: boolean;
}

function end(loan: Loan): void {
  const { buffer, stream, unpin } = loan;
  loan.closed = true;
  const home = buffer.stream;
  try {
    if (home !== null) orderBack(stream.held, home);
  } finally {
    unpin();
    stream.release();
  }
}

/** Leases that were dropped: their loans end all the same, or the memory would be lent for ever. */
const forgotten = new DeferredFinalizer<Loan>((loan) => {
  if (wantsLeakReports()) {
    console.error(`Causeway: a Lease of ${loan.buffer.size} bytes was never closed; ended by garbage collection`);
  }
  try {
    end(loan);
  } catch (error) {
    reportUncaught(`ending a Lease of ${loan.buffer.size} bytes that was collected`, error);
  }
});

/**
 * A loan: until it ends, work on its stream may use the array. What the array's home stream held when the loan began comes
 * before that work, and what the home stream gets after the loan comes after it: mutations by the owner, and the free.
 * The buffer may be closed meanwhile; its memory stays until the loan ends.
 *
 * Both ends cost an event pair on the device; the host waits for neither.
 */
export class Lease {
  /** The array. */
  readonly view: StridedMemoryView;
  /** The stream that may use it. */
  readonly stream: CudaStream;
  readonly #loan: Loan;

  /** Use {@linkcode StridedMemoryView.borrow}. */
  constructor(view: StridedMemoryView, stream: CudaStream) {
    const { buffer } = view;
    checkOpenStream(stream, "Cannot lend to a stream");
    stream.retain(); // a closed stream is an error before anything is enqueued
    let unpin: (() => void) | undefined;
    try {
      unpin = buffer.pin();
      orderConsumer(buffer, stream);
    } catch (error) {
      unpin?.();
      stream.release();
      throw error;
    }
    this.view = view;
    this.stream = stream;
    this.#loan = { buffer, stream, unpin, closed: false };
    forgotten.register(this, this.#loan);
  }

  /** Whether the loan has ended. */
  get isClosed(): boolean {
    return this.#loan.closed;
  }

  /** Ends the loan: what was enqueued on its stream so far comes before whatever the home stream gets from now on. */
  close(): void {
    if (!this.#loan.closed) end(this.#loan);
  }

  /** Ends the loan. */
  [Symbol.dispose](): void {
    this.close();
  }
}
