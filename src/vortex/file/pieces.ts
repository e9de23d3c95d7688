/**
 * Where the pieces end that columns are stored in: a batch that ends there has nothing to copy, and one that goes on
 * has its columns put together.
 *
 * @module
 */
import { chunkAt, type Layout } from "./layout.ts";
import type { RowRange } from "./rows.ts";

/** How large a batch is where nobody has said it. */
export interface BatchSizes {
  /** Rows of one at most. */
  readonly most: number;
  /** Pieces with fewer rows than these are put together: a batch has its price, however small it is. */
  readonly least: number;
}

// law vortex/batchesOfPieces: vortex/file/pieces
/** Ranges in batches that end where a piece of a column does, if that is not too near. */
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

/** The first row behind `start` where a piece ends that is not too small; `end` if there is none before. */
function pieceEnd(layout: Layout, start: number, end: number, least: number, fields?: readonly number[]): number {
  switch (layout.kind) {
    case "flat":
    case "list": // is read as a whole
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
