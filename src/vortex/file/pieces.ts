/**
 * Where the stored pieces of columns end: a batch that ends there copies nothing, and one that continues past it
 * concatenates its columns.
 *
 * @module
 */
import { chunkAt, type Layout } from "./layout.ts";
import type { RowRange } from "./rows.ts";

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
