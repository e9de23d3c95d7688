/**
 * The FastLanes word order within a block of 1024: vectors of any length process adjacent lanes, and no lane depends on
 * its neighbour.
 *
 * @module
 */

/** Words per block. */
export const BLOCK = 1024;

/** The order of the eight groups: 0, 4, 2, 6, 1, 5, 3, 7, each number with its three bits reversed. */
function reversed(group: number): number {
  return (group & 1) << 2 | group & 2 | group >> 2 & 1;
}

/** The index within a block of a row's word in the first lane; the other lanes' words of that row follow it. */
export function firstOfRow(row: number): number {
  return reversed(row >> 3) * 16 + (row & 7) * 128;
}

/** The untransposed index of each word of a transposed block. */
export const transposition: Uint16Array = Uint16Array.from(
  { length: BLOCK },
  (_, place) => (place & 15) * 64 + reversed(place >> 4 & 7) * 8 + (place >> 7),
);
