/**
 * Lending an array to another stream for a while.
 *
 * @module
 */
import type { CudaStream } from "../cuda/stream.ts";
import type { StridedMemoryView } from "../view/strided_memory_view.ts";
import { orderBack, orderConsumer } from "./order.ts";

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
  #unpin: (() => void) | undefined;

  /** Use {@linkcode StridedMemoryView.borrow}. */
  constructor(view: StridedMemoryView, stream: CudaStream) {
    const { buffer } = view;
    stream.retain(); // a closed stream is an error before anything is enqueued
    try {
      this.#unpin = buffer.pin();
      orderConsumer(buffer, stream);
    } catch (error) {
      this.#unpin?.();
      stream.release();
      throw error;
    }
    this.view = view;
    this.stream = stream;
  }

  /** Whether the loan has ended. */
  get isClosed(): boolean {
    return this.#unpin === undefined;
  }

  /** Ends the loan: what was enqueued on its stream so far comes before whatever the home stream gets from now on. */
  close(): void {
    const unpin = this.#unpin;
    if (unpin === undefined) return;
    this.#unpin = undefined;
    const { stream } = this;
    const home = this.view.buffer.stream;
    try {
      if (home !== null) orderBack(stream.held, home);
    } finally {
      unpin();
      stream.release();
    }
  }

  /** Ends the loan. */
  [Symbol.dispose](): void {
    this.close();
  }
}
