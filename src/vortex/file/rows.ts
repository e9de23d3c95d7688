/**
 * Ranges of rows: which are wanted, and in which batches they are read. A batch that ends where the stored pieces of
 * columns end copies nothing, and one that continues past it concatenates its columns.
 *
 * @module
 */
import { chunkAt, type Layout } from "./layout.ts";

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

/** Batch sizes when the caller gives none. */
export interface BatchSizes {
  /** Maximum number of rows in a batch. */
  readonly most: number;
  /** Pieces with fewer rows than this are concatenated: a batch has a fixed cost, however small it is. */
  readonly least: number;
}

// law vortex/batchesOfPieces: vortex/file/pieces
/** Splits ranges into batches that end where a piece of a column ends, if that is not too close. */
export function* batchesOfPieces(
  ranges: Iterable<RowRange>,
  layout: Layout,
  fields: readonly number[] | undefined,
  { most, least }: BatchSizes,
): Generator<RowRange> {
  for (const { start, end } of ranges) {
    for (let at = start; at < end;) {
      const next = pieceEnd(layout, at, Math.min(end, at + most), least, fields);
      yield { start: at, end: next };
      at = next;
    }
  }
}

/** The first row after `start` where a piece that is not too small ends; `end` if there is none before it. */
function pieceEnd(layout: Layout, start: number, end: number, least: number, fields?: readonly number[]): number {
  switch (layout.kind) {
    case "flat":
    case "list": // read as a whole
      return end;
    case "zoned":
      return pieceEnd(layout.data, start, end, least, fields);
    case "dict":
      return pieceEnd(layout.codes, start, end, least);
    case "struct": {
      const wanted = fields === undefined ? layout.fields : fields.flatMap((i) => layout.fields[i] ?? []);
      return wanted.reduce((nearest, field) => pieceEnd(field, start, nearest, least), end);
    }
    case "chunked": {
      const { chunks, starts } = layout;
      const at = chunkAt(starts, start);
      const [chunk, first, border] = [chunks[at], starts[at] ?? 0, Math.min(end, starts[at + 1] ?? end)];
      if (chunk === undefined || border - start < least) return end;
      return first + pieceEnd(chunk, start - first, border - first, least, fields);
    }
  }
}
