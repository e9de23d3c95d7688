/**
 * What `JSON.stringify` should write for the elements of arrays: it rejects bigints.
 *
 * @module
 */

// law view/jsonOf: view/no_array, arrow/array
/** A value in JSON, and all values in it. @throws {TypeError} for bytes, and for integers beyond 53 bits */
export function jsonOf(value: unknown): unknown {
  if (typeof value === "bigint") return exactly(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) {
    throw new TypeError("Cannot write bytes as JSON: encode them as text, as by bytes.toHex() or bytes.toBase64()");
  }
  if (Array.isArray(value)) return value.map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, jsonOf(one)]));
}

function exactly(value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw new TypeError(`Cannot write ${value} as JSON: expected an integer of at most 53 bits. Write it as text`);
}
