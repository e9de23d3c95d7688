/**
 * Decoded strings as a canonical array, after checking that they are text where text is expected.
 *
 * @module
 */
import { isValid } from "../bits.ts";
import type { VarBinViewArray } from "../canonical.ts";
import type { DTypeOf } from "../dtype.ts";
import type { Fail } from "../error.ts";
import { isAscii, TextBytes } from "../utf8.ts";
import type { Bytes } from "../wire/source.ts";
import type { DecodedStrings } from "./codes.ts";

/**
 * Builds the array.
 *
 * @param lengths the size of each row in bytes
 */
export function textArray(
  dtype: DTypeOf<"utf8" | "binary">,
  { views, buffers, isAscii }: DecodedStrings,
  lengths: Uint32Array,
  validity: Bytes | null,
  fail: Fail,
): VarBinViewArray {
  if (dtype.kind === "utf8" && !isAscii) checkText(buffers, lengths, validity, fail);
  return { kind: "varbinview", dtype, length: lengths.length, validity, views, data: buffers };
}

/** Checks the text of every non-null row. Rows are contiguous; the first row of each buffer is at 0. */
function checkText(buffers: readonly Bytes[], lengths: Uint32Array, validity: Bytes | null, fail: Fail): void {
  if (buffers.every(isAscii)) return;
  const texts = buffers.map((bytes) => new TextBytes(bytes));
  let buffer = 0;
  let at = 0;
  // law vortex/strings/checkText: vortex/strings/string_views
  for (let row = 0; row < lengths.length; row++) {
    const length = lengths[row] ?? 0;
    if (at + length > (buffers[buffer]?.length ?? 0)) [buffer, at] = [buffer + 1, 0];
    const isText = texts[buffer]?.holds(at, at + length) ?? true;
    if (!isText && isValid(validity, row)) fail(`Element ${row} is not UTF-8`);
    at += length;
  }
}
