/**
 * Where elements lie while they are converted: in the memory of WebAssembly, a block at a time.
 *
 * @module
 */
import { scratch } from "../wasm/mod.ts";
import { bytesOf, type Conversion } from "./conversion.ts";
import { type ConversionLoop, loopOf, TURN } from "./conversion_loop.ts";
import type { HostPlace } from "./host_move.ts";

/** Most elements that are converted at a time: what they take on both sides stays in the processor's nearer caches. */
export const BLOCK = 4096;

/** Most bytes on either side of elements that lie side by side: with them and their results the nearest cache is full. */
const RUN_BYTES = 8192;

/**
 * Most bytes that are taken at a time of much memory, which is in no near cache: glibc's `memcpy` moves more by one
 * instruction, which waits longer for it.
 */
const FAR_RUN_BYTES = 4096;

/** From so many bytes on memory is far. */
const FAR_BYTES = 2 * 2 ** 20;

/** A place for a block of elements of one type and for what becomes of them. */
export class ConversionStage {
  /** Bytes of an element before and after. */
  readonly fromBytes: number;
  readonly toBytes: number;
  /** Where the results are in the memory; the elements are at its beginning. */
  readonly #outputAt: number;
  readonly #size: number;
  readonly #parts: number;
  readonly #loop: ConversionLoop;

  constructor(conversion: Conversion) {
    const { from, to } = conversion;
    this.fromBytes = bytesOf(from);
    this.toBytes = bytesOf(to);
    // Not a multiple of a page behind the elements, which would make processors wait for addresses that look alike.
    this.#outputAt = BLOCK * this.fromBytes + 64;
    this.#size = this.#outputAt + BLOCK * this.toBytes;
    this.#parts = from.isComplex && to.isComplex ? 2 : 1;
    this.#loop = loopOf(conversion);
  }

  /** How many of a number of elements that lie side by side are to be converted at a time. */
  runOf(count: number): number {
    const isFar = count * (this.fromBytes + this.toBytes) >= FAR_BYTES;
    const most = isFar ? FAR_RUN_BYTES / this.fromBytes : RUN_BYTES / Math.max(this.fromBytes, this.toBytes);
    return Math.min(BLOCK, most);
  }

  /** Where elements are to be put, until somebody else uses the memory. */
  input(): HostPlace {
    return { bytes: scratch(this.#size), offset: 0 };
  }

  /** Where their results are then. */
  output(): HostPlace {
    return { bytes: scratch(this.#size), offset: this.#outputAt };
  }

  /** Takes elements that lie side by side. */
  takeRun(bytes: Uint8Array, at: number, count: number): void {
    scratch(this.#size).set(bytes.subarray(at, at + count * this.fromBytes), 0);
  }

  /** Converts so many elements, at least one; and a few that happen to lie behind them, to nobody's harm. */
  convert(count: number): void {
    this.#loop(0, this.#outputAt, Math.ceil(count * this.#parts / TURN));
  }

  /** Puts the results side by side. */
  giveRun(bytes: Uint8Array, at: number, count: number): void {
    bytes.set(scratch(this.#size).subarray(this.#outputAt, this.#outputAt + count * this.toBytes), at);
  }
}

const stages = new WeakMap<Conversion, ConversionStage>();

/** The stage of a conversion. */
export function stageOf(conversion: Conversion): ConversionStage {
  return stages.getOrInsertComputed(conversion, () => new ConversionStage(conversion));
}
