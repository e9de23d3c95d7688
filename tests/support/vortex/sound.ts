/**
 * What every decoded array guarantees to its readers, whatever it was decoded from.
 *
 * @module
 */
import { assert } from "@std/assert";
import { isUtf8 } from "node:buffer";
import type { CanonicalArray } from "../../../src/vortex/canonical.ts";
import { widthOf } from "../../../src/vortex/ptype.ts";

/** Asserts that nothing in an array refers outside it, and that text is valid UTF-8. */
export function assertSound(array: CanonicalArray): void {
  const { length, validity } = array;
  assert(Number.isSafeInteger(length) && length >= 0, `length ${length}`);
  assert(validity === null || validity.length * 8 >= length, "validity is too short");
  assert(validity === null || array.dtype.nullable, "nulls in a dtype that has none");
  switch (array.kind) {
    case "null":
      return;
    case "bool":
      assert(array.bits.length * 8 >= array.offset + length && array.offset >= 0, "bits are too short");
      return;
    case "primitive":
      assert(array.values.length === length, `${array.values.length} values of ${length}`);
      assert(array.values.BYTES_PER_ELEMENT === widthOf(array.dtype.ptype), "values of another width");
      return;
    case "decimal":
      assert(array.bytes.length === length * array.width, "decimals are too short");
      return;
    case "varbinview":
      return assertSoundText(array);
    case "list": {
      const { offsets, elements } = array;
      assert(offsets.length === length + 1, "offsets are too short");
      assert(offsets.every((offset, i) => offset >= (offsets[i - 1] ?? 0)), "offsets fall");
      assert((offsets.at(-1) ?? 0) <= elements.length, "lists end outside");
      return assertSound(elements);
    }
    case "fixedSizeList":
      assert(array.elements.length === length * array.size, "elements of lists of one size");
      return assertSound(array.elements);
    case "struct":
      for (const field of array.fields) {
        assert(field.length === length, `a field of ${field.length} of ${length}`);
        assertSound(field);
      }
      return;
    case "extension":
      assert(array.storage.length === length, "storage of another length");
      return assertSound(array.storage);
    default:
      throw new TypeError(`${array.kind} was not asked for`);
  }
}

function assertSoundText(array: CanonicalArray & { readonly kind: "varbinview" }): void {
  const { views, data, length, validity, dtype } = array;
  assert(views.length === 16 * length, "views are too short");
  for (let row = 0; row < length; row++) {
    const view = new DataView(views.buffer, views.byteOffset + 16 * row, 16);
    const size = view.getUint32(0, true);
    const buffer = size > 12 ? data[view.getUint32(8, true)] : views.subarray(16 * row + 4, 16 * row + 16);
    const start = size > 12 ? view.getUint32(12, true) : 0;
    assert(buffer !== undefined && start + size <= buffer.length, `view ${row} leads outside`);
    const isNull = validity !== null && ((validity[row >> 3] ?? 0) >> (row & 7) & 1) === 0;
    if (isNull) continue;
    assert(dtype.kind === "binary" || isUtf8(buffer.subarray(start, start + size)), `row ${row} is no text`);
  }
}
