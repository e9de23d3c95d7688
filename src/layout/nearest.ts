/**
 * Which known name a mistyped one resembles most.
 *
 * @module
 */

// law layout/nearestOf: options, layout/dtype_names
/** The known name nearest to a given one, and the number of letters that differ. */
export function nearestOf(
  given: string,
  names: readonly string[],
): { readonly name: string; readonly letters: number } {
  let nearest = { name: "", letters: Infinity };
  for (const name of names) {
    const letters = editDistance(given.toLowerCase(), name.toLowerCase());
    if (letters < nearest.letters) nearest = { name, letters };
  }
  return nearest;
}

// law layout/editDistance: options, layout/nearest
/** How many letters must be added, omitted, replaced, or swapped with their neighbour. */
export function editDistance(from: string, to: string): number {
  let before: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSame = from[i - 1] === to[j - 1];
      const isSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row.push(Math.min(
        (last[j] ?? Infinity) + 1,
        (row[j - 1] ?? Infinity) + 1,
        (last[j - 1] ?? Infinity) + (isSame ? 0 : 1),
        isSwapped ? (before[j - 2] ?? Infinity) + 1 : Infinity,
      ));
    }
    [before, last] = [last, row];
  }
  return last[to.length] ?? 0;
}
