/**
 * Concatenated strings of the non-null rows, each prefixed with its size in 4 bytes.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import { INLINE_BYTES } from "../canonical.ts";
import type { Fail } from "../error.ts";
import { TextBytes } from "../utf8.ts";
import type { Allocate, Bytes } from "../wire/source.ts";

/**
 * The views of all rows into the bytes, which stay as they are. Views of null rows are empty.
 *
 * @param isText whether the strings must be UTF-8
 */
export function prefixedText(
  bytes: Bytes,
  rows: number,
  validity: Uint8Array | null,
  isText: boolean,
  allocate: Allocate,
  fail: Fail,
): Bytes {
  const views = allocate(rows * 16);
  const words = new Int32Array(views.buffer, views.byteOffset, rows * 4);
  const source = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = new TextBytes(bytes);
  let at = 0;
  // law vortex/compressed/prefixedText: vortex/strings/built, vortex/compressed/malformed
  for (let row = 0; row < rows; row++) {
    if (!isValid(validity, row)) continue;
    if (at + 4 > bytes.length) fail(`${bytes.length} bytes of strings end before the size of row ${row}`);
    const size = source.getUint32(at, true);
    const start = at + 4;
    at = start + size;
    if (at > bytes.length) {
      fail(`row ${row} has ${size} bytes, but the strings end ${bytes.length - start} bytes later`);
    }
    if (isText && !text.holds(start, at)) fail(`row ${row} is not UTF-8`);
    words[row * 4] = size;
    if (size > INLINE_BYTES) {
      words[row * 4 + 1] = source.getInt32(start, true);
      words[row * 4 + 3] = start; // of buffer 0
    } else {
      for (let i = 0; i < size; i++) views[row * 16 + 4 + i] = bytes[start + i] ?? 0;
    }
  }
  if (at !== bytes.length) fail(`${bytes.length - at} bytes after the last string`);
  return views;
}
