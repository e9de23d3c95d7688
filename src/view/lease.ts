/**
 * The lease of a view.
 *
 * @module
 */
import { describeArray } from "./describe.ts";
import { checkMade, type DTypeName, showAs } from "../layout/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import { Loan } from "../order/mod.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";

/**
 * A loan of an array: until it ends, work on its stream may use the array. What the array's home stream held when the
 * lease began comes before that work, and work that the home stream gets after the lease comes after it: mutations by
 * the owner, and the free. The buffer may be closed meanwhile; its memory is pinned until the lease ends.
 *
 * Beginning and ending each cost an event pair on the device; the host waits for neither.
 *
 * @example
 * ```ts
 * import { Cuda, StridedMemoryView } from "@causeway/causeway";
 *
 * using cuda = Cuda.simulate();
 * const device = cuda.device(0);
 * using home = device.createStream();
 * using other = device.createStream();
 * using buffer = device.memory.allocate(4, { stream: home });
 * const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint8" });
 * buffer.fill(1, { stream: home });
 * {
 *   using lease = view.borrow(other);
 *   lease.view.buffer.fill(2, { stream: other }); // after the first fill
 * }
 * buffer.fill(3, { stream: home }); // after the second
 * console.log(await view.toTypedArray()); // Uint8Array(4) [ 3, 3, 3, 3 ]
 * ```
 */
export class Lease<D extends DTypeName = DTypeName> {
  /** The array. */
  readonly view: StridedMemoryView<D>;
  /** The stream that may use it. */
  readonly stream: CudaStream;
  readonly #loan: Loan;

  /** Use {@linkcode StridedMemoryView.borrow}. */
  constructor(view: StridedMemoryView<D>, stream: CudaStream) {
    checkMade(view, "Lease", "view.borrow(stream)");
    this.#loan = new Loan(view.buffer, stream);
    this.view = view;
    this.stream = stream;
  }

  /** Whether the lease has ended. */
  get isClosed(): boolean {
    return this.#loan.isEnded;
  }

  /** Ends the lease: work enqueued on its stream so far comes before whatever the home stream gets from now on. */
  close(): void {
    this.#loan.end();
  }

  /** Ends the lease. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(
      Lease,
      ({ view, stream, isClosed }) =>
        `of ${describeArray(view).split("\n")[0]} to ${stream}${isClosed ? ", ended" : ""}`,
    );
  }
}
