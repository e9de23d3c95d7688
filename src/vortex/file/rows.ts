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

/**
 * The rows that are left when some pieces are not wanted.
 *
 * @param borders where what is known of rows may change, rising
 * @param isWanted of a piece between two borders
 * @returns neighbours as one range
 */
export function keptRows(
  { start, end }: RowRange,
  borders: readonly number[],
  isWanted: (piece: RowRange) => boolean,
): RowRange[] {
  const kept: { start: number; end: number }[] = [];
  const inside = borders.filter((border) => border > start && border < end);
  const all = [start, ...new Set(inside), end];
  for (let i = 1; i < all.length; i++) {
    const piece = { start: all[i - 1] ?? 0, end: all[i] ?? 0 };
    if (piece.start === piece.end || !isWanted(piece)) continue;
    const last = kept.at(-1);
    if (last?.end === piece.start) last.end = piece.end;
    else kept.push({ ...piece });
  }
  return kept;
}

// law vortex/batchesOf: vortex/file/files
/** Ranges in pieces of at most so many rows. */
export function* batchesOf(ranges: readonly RowRange[], most: number): Generator<RowRange> {
  for (const { start, end } of ranges) {
    for (let at = start; at < end; at += most) yield { start: at, end: Math.min(end, at + most) };
  }
}
