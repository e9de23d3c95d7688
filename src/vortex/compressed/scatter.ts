/**
 * From the values that are not null to a value for each row.
 *
 * @module
 */
import { bitAt } from "../bits.ts";
import type { PrimitiveValues } from "../ptype.ts";

/**
 * Moves values, which are the first ones of an array, to the rows that are not null; all others become 0. Floats move
 * as numbers never do: give their bits as integers.
 *
 * @param validity a bit for each row, as many of them set as there are values
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
