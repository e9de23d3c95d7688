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
 * The rows that are left when some pieces are not wanted. They are looked for as they are asked for: who wrote the file
 * says how many pieces there are.
 *
 * @param zones how many rows are between two borders, for each column of which something is known by zones
 * @param isWanted of a piece between two borders, whosever they are
 * @returns neighbours as one range
 */
export function* keptRows(
  { start, end }: RowRange,
  zones: readonly number[],
  isWanted: (piece: RowRange) => boolean,
): Generator<RowRange> {
  let from = start; // of what is kept and not given yet, up to where we are
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
/** Ranges in pieces of at most so many rows. */
export function* batchesOf(ranges: Iterable<RowRange>, most: number): Generator<RowRange> {
  for (const { start, end } of ranges) {
    for (let at = start; at < end; at += most) yield { start: at, end: Math.min(end, at + most) };
  }
}
