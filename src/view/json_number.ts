/**
 * 64-bit integers in JSON, which rejects bigints.
 *
 * @module
 */

// law view/jsonNumber: view/no_array, arrow/array
/** An integer as a number. @throws {TypeError} beyond 53 bits, where numbers are not exact */
export function jsonNumber(value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new TypeError(`Cannot write ${value} as JSON: expected an integer of at most 53 bits. Write it as text`);
}
