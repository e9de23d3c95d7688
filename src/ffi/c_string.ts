/**
 * Strings to and from C: NUL-terminated UTF-8.
 *
 * @module
 */
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";

const encoder = new TextEncoder();
// law ffi/decoder: ffi/c_string
const decoder = new TextDecoder("utf-8", { ignoreBOM: true }); // "ignore" keeps the BOM, as a character like any other

/**
 * A NUL-terminated copy of a string, for a `buffer` argument.
 *
 * @throws {TypeError} if the string itself contains NUL, where C would truncate it, or half a surrogate pair, which has
 *   no UTF-8
 */
export function cString(text: string): Uint8Array<ArrayBuffer> {
  if (typeof text !== "string") throw new TypeError(`Cannot pass a ${typeof text} to C: expected a string`);
  if (text.includes("\0")) throw new TypeError(`Cannot pass ${JSON.stringify(text)} to C: it contains NUL`);
  if (!text.isWellFormed()) {
    throw new TypeError(`Cannot pass ${JSON.stringify(text)} to C: it contains half a surrogate pair`);
  }
  return encoder.encode(`${text}\0`);
}

/**
 * Reads a NUL-terminated string.
 *
 * @returns an empty string for a null pointer
 */
export function readCString(address: bigint): string {
  if (address === 0n) return "";
  return readString(address, Number(libc().loading.strlen(address)));
}

/** Reads a string of a known length in bytes. @throws {RangeError} as {@linkcode decodeText} does */
export function readString(address: bigint, length: number): string {
  return decodeText(new Uint8Array(ffiPort().memory(address, length)));
}

// law ffi/decodeText: ffi/c_string
/**
 * The string that bytes of UTF-8 are. A byte order mark is a character like any other.
 *
 * @throws {RangeError} if no string of this runtime is that long: Bun's decoder returns an empty one
 */
export function decodeText(bytes: Uint8Array): string {
  try {
    const text = decoder.decode(bytes);
    if (text !== "" || bytes.length === 0) return text;
  } catch (cause) {
    throw tooLong(bytes, { cause });
  }
  throw tooLong(bytes);
}

function tooLong({ length }: Uint8Array, options?: ErrorOptions): RangeError {
  return new RangeError(
    `Cannot make a string of ${length} bytes of UTF-8: no string of this runtime is that long. Make several, of parts ` +
      "of it",
    options,
  );
}

/** Reads the characters before the first NUL of a fixed-size field. */
export function readField(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return decoder.decode(end < 0 ? bytes : bytes.subarray(0, end));
}
