/**
 * The stage for elements being converted: WebAssembly memory, a block at a time.
 *
 * @module
 */
import type { NativeLoop } from "../native/mod.ts";
import { run, scratch } from "../wasm/mod.ts";
import { bytesOf, type Conversion } from "./conversion.ts";
import { type ConversionLoop, loopOf, nativeLoopOf, TURN } from "./conversion_loop.ts";

/** Most bytes on either side: with the results, their sources and the stage the processor's nearest cache is full. */
const MAX_BYTES = 8192;

/**
 * Most bytes on both sides together for far memory, which is in no cache. More than half of the nearest cache, which
 * two threads may share, is better left to such memory as it streams through: with 16 KiB everything took twice as
 * long, and with less the calls for each box are measurable.
 */
const MAX_FAR_BYTES = 6144;

/** Arrays that take at least this many bytes together are far. */
const FAR_BYTES = 2 * 2 ** 20;

/** One-byte elements in a cache line: boxes of multiples of this many elements are whole lines for any type. */
const LINE = 64;

// law copy/ConversionStage: copy/conversion_stage, copy/host_conversion, copy/conversion
/** Space for a block of elements of one type and their results. */
export class ConversionStage {
  static #made = 0;
  /** A number that no other stage has. */
  readonly id: number = ConversionStage.#made++;
  /** Bytes of an element before and after conversion. */
  readonly fromBytes: number;
  readonly toBytes: number;
  /** How many elements fit. */
  readonly most: number;
  /** Offset of the results in the memory. */
  readonly outputAt: number;
  /** How many elements one iteration of the loop converts. */
  readonly turn: number;
  readonly #conversion: Conversion;
  readonly #size: number;
  readonly #loop: ConversionLoop;
  #native: NativeLoop | null | undefined;

  constructor(conversion: Conversion) {
    const { from, to } = conversion;
    this.#conversion = conversion;
    this.fromBytes = bytesOf(from);
    this.toBytes = bytesOf(to);
    this.most = MAX_BYTES / Math.max(this.fromBytes, this.toBytes);
    // Not a multiple of the page size behind the elements: such aliasing addresses make processors stall.
    this.outputAt = this.most * this.fromBytes + 64;
    this.#size = this.outputAt + this.most * this.toBytes;
    this.turn = from.isComplex && to.isComplex ? TURN / 2 : TURN;
    this.#loop = loopOf(conversion);
  }

  /** A loop that converts elements in place, without a stage; null if there is no machine code for it. */
  native(): NativeLoop | null {
    if (this.#native === undefined) this.#native = nativeLoopOf(this.#conversion);
    return this.#native;
  }

  /** Whether arrays of this many elements are far. */
  isFar(count: number): boolean {
    return count * (this.fromBytes + this.toBytes) >= FAR_BYTES;
  }

  /** How many of `count` elements are best converted at a time. */
  mostOf(count: number): number {
    if (!this.isFar(count)) return this.most;
    const bytes = this.fromBytes + this.toBytes;
    return Math.min(this.most, Math.floor(MAX_FAR_BYTES / bytes / LINE) * LINE);
  }

  /** The memory at whose start elements are put; valid until other code uses it. */
  memory(): Uint8Array<ArrayBuffer> {
    return scratch(this.#size);
  }

  /** Takes contiguous elements. */
  takeRun(bytes: Uint8Array, at: number, count: number): void {
    this.memory().set(bytes.subarray(at, at + count * this.fromBytes), 0);
  }

  /** Converts `count` elements, at least one, and harmlessly a few more that happen to lie behind them. */
  convert(count: number): void {
    run(this.#loop, 0, this.outputAt, Math.ceil(count / this.turn));
  }

  /** Writes the results contiguously. */
  giveRun(bytes: Uint8Array, at: number, count: number): void {
    bytes.set(this.memory().subarray(this.outputAt, this.outputAt + count * this.toBytes), at);
  }
}

const stages = new WeakMap<Conversion, ConversionStage>();

/** The stage of a conversion. */
export function stageOf(conversion: Conversion): ConversionStage {
  return stages.getOrInsertComputed(conversion, () => new ConversionStage(conversion));
}
