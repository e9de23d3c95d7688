/**
 * Suggestions: the known word that is nearest to a mistyped one.
 *
 * @module
 */

/** "; did you mean --json?", or nothing if no known word is near. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const near = nearest(word, known);
  return near === null ? "" : `; did you mean ${near}?`;
}

/** The known word that the fewest typing mistakes turn into this one; null if it takes too many. */
export function nearest(word: string, known: Iterable<string>): string | null {
  if (word.replace(/^-+/, "").length < 2) return null; // every other letter is as near
  let best: string | null = null;
  let fewest = Math.max(1, Math.floor(word.replace(/^-+/, "").length / 3)) + 1;
  for (const candidate of known) {
    const slips = slipsBetween(word, candidate);
    if (slips < fewest) [best, fewest] = [candidate, slips];
  }
  return best;
}

/** How many letters must be added, omitted, replaced, or swapped with their neighbour. */
export function slipsBetween(from: string, to: string): number {
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
