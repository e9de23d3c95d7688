/**
 * What the two sides of the demo compare: a digest of the bytes and the sum of every column.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { DType, Scalar, Shape } from "../layout/mod.ts";

/** The digest and the sums of an array. Sums are text, because JSON has neither NaN nor 64-bit integers. */
export interface Summary {
  /** SHA-256 of the elements' bytes in C order, in hexadecimal. */
  readonly sha256: string;
  /**
   * The sum of every column (index of the last axis), added up in C order; one sum for an array of fewer axes than 2.
   */
  readonly sums: readonly string[];
}

/** How many columns an array of this shape has. */
function columnsOf(shape: Shape): number {
  return shape.length < 2 ? 1 : shape.at(-1) ?? 1;
}

/** Sums elements by column, as they come in C order. 64-bit integers are added exactly, all others as numbers. */
class ColumnSums {
  readonly #real: (number | bigint)[];
  readonly #imaginary: number[] | null;
  #next = 0;

  constructor(columns: number, dtype: DType) {
    const exact = dtype.typedArray === BigInt64Array || dtype.typedArray === BigUint64Array;
    this.#real = new Array<number | bigint>(columns).fill(exact ? 0n : 0);
    this.#imaginary = dtype.name.startsWith("complex") ? new Array<number>(columns).fill(0) : null;
  }

  /** Adds the next element. */
  add(value: Scalar): void {
    const column = this.#next;
    this.#next = column + 1 === this.#real.length ? 0 : column + 1;
    const sum = this.#real[column] ?? 0;
    if (typeof value === "object") {
      this.#real[column] = Number(sum) + value.re;
      if (this.#imaginary !== null) this.#imaginary[column] = (this.#imaginary[column] ?? 0) + value.im;
    } else if (typeof value === "bigint") this.#real[column] = BigInt(sum) + value;
    else this.#real[column] = Number(sum) + Number(value);
  }

  /** The sums as text. */
  toStrings(): string[] {
    return this.#real.map((re, column) => this.#imaginary === null ? `${re}` : `${re}+${this.#imaginary[column]}i`);
  }
}

/** Summarises an array whose elements are contiguous in C order. */
export function summarize(bytes: Uint8Array, shape: Shape, dtype: DType): Summary {
  const sums = new ColumnSums(columnsOf(shape), dtype);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.byteLength; at += dtype.itemsize) {
    const value = dtype.read(view, at);
    if (typeof value === "object" && "length" in value) throw new TypeError("An element with lanes has no sum");
    sums.add(value);
  }
  return { sha256: createHash("sha256").update(bytes).digest("hex"), sums: sums.toStrings() };
}
