/**
 * 64-bit integers in JSON, which rejects bigints.
 *
 * @module
 */

// law view/jsonNumber: view/no_array, arrow/array
/** The number that is exactly an integer. @throws {TypeError} if there is none */
export function jsonNumber(value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new TypeError(`Cannot write ${value} as JSON: expected an integer of at most 53 bits. Write it as text`);
}
