/**
 * Expands the non-null values to one value per row.
 *
 * @module
 */
import { bitAt } from "../bits.ts";
import type { PrimitiveValues } from "../ptype.ts";

/**
 * Moves the values at the start of an array to the non-null rows, in place; all other rows become 0. Moving floats as
 * numbers may change their bits: pass them as integers.
 *
 * @param validity one bit per row, of which `count` are set
 */
export function scatter(
  values: Exclude<PrimitiveValues, Float32Array | Float64Array>,
  count: number,
  validity: Uint8Array,
): void {
  if (values instanceof BigInt64Array || values instanceof BigUint64Array) {
    const halves = new Int32Array(values.buffer, values.byteOffset, values.length * 2);
    let from = count * 2;
    // law vortex/compressed/scatter: vortex/compressed/scatter
    for (let row = values.length - 1; row >= 0; row--) {
      const isValid = bitAt(validity, row);
      if (isValid) from -= 2;
      halves[row * 2] = isValid ? halves[from] ?? 0 : 0;
      halves[row * 2 + 1] = isValid ? halves[from + 1] ?? 0 : 0;
    }
    return;
  }
  let from = count;
  for (let row = values.length - 1; row >= 0; row--) values[row] = bitAt(validity, row) ? values[--from] ?? 0 : 0;
}
