/**
 * Arrow's values in JSON.
 *
 * @module
 */
import { jsonNumber } from "../view/mod.ts";
import type { ArrowValue } from "./element_reader.ts";

// law arrow/jsonOf: arrow/array
/** What `JSON.stringify` should write for a value. @throws {TypeError} for bytes, and integers beyond 53 bits */
export function jsonOf(value: ArrowValue): unknown {
  if (typeof value === "bigint") return jsonNumber(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) {
    throw new TypeError("Cannot write bytes as JSON: encode them as text, as by bytes.toHex() or bytes.toBase64()");
  }
  if (isList(value)) return value.map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, jsonOf(one)]));
}

function isList(value: object): value is readonly ArrowValue[] {
  return Array.isArray(value);
}
