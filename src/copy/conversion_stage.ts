/**
 * Where elements lie while they are converted: in the memory of WebAssembly, a block at a time.
 *
 * @module
 */
import { scratch } from "../wasm/mod.ts";
import { bytesOf, type Conversion } from "./conversion.ts";
import { type ConversionLoop, loopOf, TURN } from "./conversion_loop.ts";

/** Most elements of a block: what they take on both sides stays in the processor's nearest caches. */
export const BLOCK = 4096;

/** A place for a block of elements of one type and for what becomes of them. */
export class ConversionStage {
  /** Bytes of an element before and after. */
  readonly inputBytes: number;
  readonly outputBytes: number;
  /** Where the results are in the memory; the elements are at its beginning. */
  readonly outputAt: number;
  readonly #parts: number;
  readonly #loop: ConversionLoop;

  constructor(conversion: Conversion) {
    const { from, to } = conversion;
    this.inputBytes = bytesOf(from);
    this.outputBytes = bytesOf(to);
    // Not a multiple of a page behind the elements, which would make processors wait for addresses that look alike.
    this.outputAt = BLOCK * this.inputBytes + 64;
    this.#parts = from.isComplex && to.isComplex ? 2 : 1;
    this.#loop = loopOf(conversion);
  }

  /** The memory, until somebody else uses it. */
  memory(): Uint8Array<ArrayBuffer> {
    return scratch(this.outputAt + BLOCK * this.outputBytes);
  }

  /** Converts so many elements, at least one; and a few that happen to lie behind them, to nobody's harm. */
  convert(count: number): void {
    this.#loop(0, this.outputAt, Math.ceil(count * this.#parts / TURN));
  }
}
