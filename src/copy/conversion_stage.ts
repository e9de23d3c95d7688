/**
 * Where elements lie while they are converted: in the memory of WebAssembly, a block at a time.
 *
 * @module
 */
import type { NativeLoop } from "../native/mod.ts";
import { run, scratch } from "../wasm/mod.ts";
import { bytesOf, type Conversion } from "./conversion.ts";
import { type ConversionLoop, loopOf, nativeLoopOf, TURN } from "./conversion_loop.ts";

/**
 * Most bytes on either side: with them, with what they are made of and with what is on the stage the processor's nearest
 * cache is full.
 */
const MOST_BYTES = 8192;

/**
 * Most bytes on both sides together for far memory, which no cache has. While such memory comes and goes, more than half
 * of the nearest cache is better left to it, which two threads may share: with 16 KiB everything took twice as long,
 * and with less the calls for each box show.
 */
const MOST_FAR_BYTES = 6144;

/** Arrays that take as many bytes together are far. */
const FAR_BYTES = 2 * 2 ** 20;

/** Elements of a byte that fill a line of a cache: of so many, boxes of any type are whole lines. */
const LINE = 64;

/** A place for a block of elements of one type and for what becomes of them. */
export class ConversionStage {
  /** Bytes of an element before and after. */
  readonly fromBytes: number;
  readonly toBytes: number;
  /** How many elements there is place for. */
  readonly most: number;
  /** Where their results are then in the memory. */
  readonly outputAt: number;
  /** How many elements a turn of the loop converts. */
  readonly turn: number;
  readonly #conversion: Conversion;
  readonly #size: number;
  readonly #loop: ConversionLoop;

  constructor(conversion: Conversion) {
    const { from, to } = conversion;
    this.#conversion = conversion;
    this.fromBytes = bytesOf(from);
    this.toBytes = bytesOf(to);
    this.most = MOST_BYTES / Math.max(this.fromBytes, this.toBytes);
    // Not a multiple of a page behind the elements, which would make processors wait for addresses that look alike.
    this.outputAt = this.most * this.fromBytes + 64;
    this.#size = this.outputAt + this.most * this.toBytes;
    this.turn = from.isComplex && to.isComplex ? TURN / 2 : TURN;
    this.#loop = loopOf(conversion);
  }

  /** What converts elements where they are, without a stage; null where there is no machine code for it. */
  native(): NativeLoop | null {
    return nativeLoopOf(this.#conversion);
  }

  /** Whether so many elements are far. */
  isFar(count: number): boolean {
    return count * (this.fromBytes + this.toBytes) >= FAR_BYTES;
  }

  /** How many of so many elements are best converted at a time. */
  mostOf(count: number): number {
    if (!this.isFar(count)) return this.most;
    const bytes = this.fromBytes + this.toBytes;
    return Math.min(this.most, Math.floor(MOST_FAR_BYTES / bytes / LINE) * LINE);
  }

  /** Where elements are to be put, until somebody else uses the memory: at its beginning. */
  memory(): Uint8Array<ArrayBuffer> {
    return scratch(this.#size);
  }

  /** Takes elements that lie side by side. */
  takeRun(bytes: Uint8Array, at: number, count: number): void {
    this.memory().set(bytes.subarray(at, at + count * this.fromBytes), 0);
  }

  /** Converts so many elements, at least one; and a few that happen to lie behind them, to nobody's harm. */
  convert(count: number): void {
    run(this.#loop, 0, this.outputAt, Math.ceil(count / this.turn));
  }

  /** Puts the results side by side. */
  giveRun(bytes: Uint8Array, at: number, count: number): void {
    bytes.set(this.memory().subarray(this.outputAt, this.outputAt + count * this.toBytes), at);
  }
}

const stages = new WeakMap<Conversion, ConversionStage>();

/** The stage of a conversion. */
export function stageOf(conversion: Conversion): ConversionStage {
  return stages.getOrInsertComputed(conversion, () => new ConversionStage(conversion));
}
