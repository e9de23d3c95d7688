/**
 * Where FastLanes puts the words of a block of 1024: so that a vector of any length works on lanes side by side, and no
 * lane needs its neighbour.
 *
 * @module
 */

/** Words of a block. */
export const BLOCK = 1024;

/** The order of eight groups: 0, 4, 2, 6, 1, 5, 3, 7, which is each number with its three bits reversed. */
function reversed(group: number): number {
  return (group & 1) << 2 | group & 2 | group >> 2 & 1;
}

/** The word of a block that the first lane has in a row; the other lanes' words of that row follow it. */
export function firstOfRow(row: number): number {
  return reversed(row >> 3) * 16 + (row & 7) * 128;
}

/** Where the word at each place of a transposed block belongs. */
export const transposition: Uint16Array = Uint16Array.from(
  { length: BLOCK },
  (_, place) => (place & 15) * 64 + reversed(place >> 4 & 7) * 8 + (place >> 7),
);
