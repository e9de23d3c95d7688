/**
 * Lengths and offsets of rows.
 *
 * @module
 */
import type { Fail } from "../error.ts";

// law vortex/strings/asUint32: vortex/strings/malformed
/**
 * Lengths or offsets of rows, of any integer type, as uint32; uint32 arrays are returned as is.
 *
 * @param what names the numbers in errors
 * @param limit the greatest allowed value
 */
export function asUint32(values: IntegerArray, limit: number, what: string, fail: Fail): Uint32Array {
  const check = (words: Uint32Array): Uint32Array => {
    for (let i = 0; i < words.length; i++) if ((words[i] ?? 0) > limit) wrong(values, i, limit, what, fail);
    return words;
  };
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    const halves = new Uint32Array(values.buffer, values.byteOffset, values.length * 2);
    const words = new Uint32Array(values.length);
    for (let i = 0; i < words.length; i++) {
      if ((halves[2 * i + 1] ?? 0) !== 0) wrong(values, i, limit, what, fail);
      words[i] = halves[2 * i] ?? 0;
    }
    return check(words);
  }
  if (values instanceof Uint32Array) return check(values);
  // Negative numbers wrap and become too large. The engine's copy is several times as fast as a loop for any type.
  const words = new Uint32Array(values);
  return limit >= 0xffff && (values instanceof Uint8Array || values instanceof Uint16Array) ? words : check(words);
}

/** The element types of children with lengths and offsets. */
export type IntegerArray =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array;

function wrong(values: IntegerArray, index: number, limit: number, what: string, fail: Fail): never {
  return fail(`${what} ${index} is ${values[index]}, expected 0 to ${limit}`);
}

/** Checks that offsets never decrease, and that the last is in bounds. */
export function checkOffsets(offsets: Uint32Array, end: number, what: string, fail: Fail): void {
  let last = 0;
  let falls = 0;
  // law vortex/strings/checkOffsets: vortex/strings/malformed
  for (let i = 0; i < offsets.length; i++) {
    const offset = offsets[i] ?? 0;
    falls |= Number(offset < last);
    last = offset;
  }
  if (falls !== 0) {
    const at = offsets.findIndex((offset, i) => i > 0 && offset < (offsets[i - 1] ?? 0));
    fail(
      `${what} fall from ${offsets[at - 1]} to ${offsets[at]} at ${at}: expected them never to decrease`,
    );
  }
  if (last > end) fail(`the last of the ${what} is ${last}, expected at most ${end}`);
}

/**
 * Checks that strings are no longer than their codes can make them, before memory is allocated for them.
 *
 * @param lengths the size of each row in bytes
 * @param most the most bytes that all codes can stand for
 * @returns the size of all rows in bytes
 */
export function checkTotal(lengths: Uint32Array, most: number, fail: Fail): number {
  let total = 0;
  // law vortex/strings/checkTotal: vortex/strings/malformed
  for (let i = 0; i < lengths.length; i++) total += lengths[i] ?? 0;
  if (total > most) fail(`the rows have ${total} bytes, but their codes decode to at most ${most}`);
  return total;
}
