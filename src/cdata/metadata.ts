/**
 * Conversion of field metadata from and to the bytes of the C data interface: a 32-bit count, then for each pair the
 * length of the key, the key, the length of the value, the value.
 *
 * @module
 */
import { ffiPort, littleEndian } from "../ffi/mod.ts";
import type { ArrowMetadata } from "./type.ts";
import { ExchangeError } from "../order/mod.ts";

const encoder = new TextEncoder();
// law cdata/lenient: arrow/array
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });
// law cdata/strict: arrow/array
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true });

/** The most pairs that a field may have. */
const maxPairs = 2 ** 16;

// law cdata/readMetadata: cdata/fuzz, arrow/array
/**
 * Reads metadata at an address.
 *
 * @throws {ExchangeError} if a length is negative, or there are implausibly many pairs
 */
export function readMetadata(address: bigint): ArrowMetadata {
  const pairs = new Map<string, string | Uint8Array>();
  if (address === 0n) return pairs;
  let at = address;
  const int = (): number => {
    const value = new DataView(ffiPort().memory(at, 4)).getInt32(0, littleEndian);
    at += 4n;
    if (value >= 0) return value;
    throw new ExchangeError(`Cannot import an ArrowSchema: its metadata has the length ${value}. Expected at least 0`);
  };
  const bytes = (): Uint8Array<ArrayBuffer> => {
    const length = int();
    const copy = length === 0 ? new Uint8Array(0) : new Uint8Array(ffiPort().memory(at, length)).slice();
    at += BigInt(length);
    return copy;
  };
  const count = int();
  if (count > maxPairs) {
    throw new ExchangeError(
      `Cannot import an ArrowSchema: its metadata has ${count} pairs. Expected up to ${maxPairs}`,
    );
  }
  for (let i = 0; i < count; i++) {
    const key = lenient.decode(bytes());
    const value = textIfPossible(bytes());
    if (!pairs.has(key)) pairs.set(key, value); // of equal keys, other libraries find the first
  }
  return pairs;
}

function textIfPossible(bytes: Uint8Array<ArrayBuffer>): string | Uint8Array {
  try {
    return strict.decode(bytes);
  } catch {
    return bytes;
  }
}

/** The bytes of metadata; null if there is none. */
export function encodeMetadata(metadata: ArrowMetadata): Uint8Array<ArrayBuffer> | null {
  if (metadata.size === 0) return null;
  const parts = [...metadata].flatMap(([key, value]) => [
    encoder.encode(key),
    typeof value === "string" ? encoder.encode(value) : value,
  ]);
  const size = parts.reduce((sum, { length }) => sum + 4 + length, 4);
  const encoded = new Uint8Array(size);
  const view = new DataView(encoded.buffer);
  view.setInt32(0, metadata.size, littleEndian);
  let at = 4;
  for (const part of parts) {
    view.setInt32(at, part.length, littleEndian);
    encoded.set(part, at + 4);
    at += 4 + part.length;
  }
  return encoded;
}
