/**
 * Ranges of rows: which are wanted, and in which pieces they are read.
 *
 * @module
 */

/** Rows from `start` to before `end`. */
export interface RowRange {
  readonly start: number;
  readonly end: number;
}

// law vortex/keptRows: vortex/file/rows
/**
 * The rows that are left when some pieces are not wanted. They are computed lazily: the writer of the file determines
 * how many pieces there are.
 *
 * @param zones rows between two borders, for each column with zone statistics
 * @param isWanted whether a piece between two borders, of whichever columns, is wanted
 * @returns ranges, with neighbours merged
 */
export function* keptRows(
  { start, end }: RowRange,
  zones: readonly number[],
  isWanted: (piece: RowRange) => boolean,
): Generator<RowRange> {
  let from = start; // start of the rows kept and not yet yielded, which end at `at`
  for (let at = start; at < end;) {
    const next = zones.reduce((least, zone) => Math.min(least, (Math.floor(at / zone) + 1) * zone), end);
    if (!isWanted({ start: at, end: next })) {
      if (from < at) yield { start: from, end: at };
      from = next;
    }
    at = next;
  }
  if (from < end) yield { start: from, end };
}

// law vortex/batchesOf: vortex/file/rows
/** Splits ranges into pieces of at most `most` rows. */
export function* batchesOf(ranges: Iterable<RowRange>, most: number): Generator<RowRange> {
  for (const { start, end } of ranges) {
    for (let at = start; at < end; at += most) yield { start: at, end: Math.min(end, at + most) };
  }
}
