/**
 * Filters, row by row: what a filter means for one row, written from its definition and nothing else.
 *
 * @module
 */
import type { VortexFilter } from "../../../src/vortex/file/filter.ts";

/** A value of a row as the test made it; null is never `undefined`. */
export type RowValue = null | boolean | number | bigint | string | Uint8Array;

/** True, false, or null where a null makes the result unknown. */
export function holds(filter: VortexFilter, row: Readonly<Record<string, RowValue>>): boolean | null {
  if ("not" in filter) return negate(holds(filter.not, row));
  if ("and" in filter) {
    const parts = filter.and.map((one) => holds(one, row));
    return parts.includes(false) ? false : parts.includes(null) ? null : true;
  }
  if ("or" in filter) return negate(holds({ and: filter.or.map((not) => ({ not })) }, row));
  const value = row[String(filter.column)] ?? null;
  if (!("value" in filter)) return (value === null) === (filter.op === "is_null");
  if (value === null) return null;
  const asked = filter.value as RowValue | readonly RowValue[]; // tests compare what they made
  if (asked instanceof Array) return asked.some((one) => order(value, one) === 0);
  if (filter.op === "starts_with") return hex(value).startsWith(hex(asked as RowValue));
  const place = order(value, asked as RowValue);
  const truths: Readonly<Record<string, boolean>> = {
    "==": place === 0,
    "!=": place !== 0,
    "<": place < 0,
    "<=": place <= 0,
    ">": place > 0,
    ">=": place >= 0,
  };
  return truths[filter.op] ?? null;
}

function negate(truth: boolean | null): boolean | null {
  return truth === null ? null : !truth;
}

/** Bytes as text with the same order. */
function hex(value: RowValue): string {
  return Buffer.from(value as string | Uint8Array).toString("hex"); // only texts and bytes reach this
}

/** The total order of floats, of integers by value, of text by its UTF-8 bytes. */
function order(one: RowValue, other: RowValue): number {
  if (typeof one === "string" || one instanceof Uint8Array) {
    const [a, b] = [hex(one), hex(other)];
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (typeof one === "number" && typeof other === "number") {
    const rank = (value: number) => Number.isNaN(value) ? (isNegative(value) ? -1 : 1) : 0;
    if (rank(one) !== rank(other)) return rank(one) - rank(other);
    if (Number.isNaN(one)) return 0; // tests make one NaN of each sign
    if (one === 0 && other === 0) return Number(isNegative(other)) - Number(isNegative(one));
  }
  // Numbers and bigints compare exactly.
  return (one as number) < (other as number) ? -1 : (one as number) > (other as number) ? 1 : 0;
}

function isNegative(value: number): boolean {
  return (new Uint8Array(Float64Array.of(value).buffer)[7] ?? 0) >= 128;
}
