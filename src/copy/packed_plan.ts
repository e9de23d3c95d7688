/**
 * Plans moves of packed elements that share bytes with others: every destination byte that contains some is written by
 * one thread of a kernel, so that no two write the same byte.
 *
 * @module
 */
import type { CopyAxis, PackedProblem } from "./coalesced_copy.ts";

/** The elements that a kernel moves. */
export interface PackedRows {
  /** Bits of an element: 1 to 7. */
  readonly bits: number;
  /** Axes whose steps are whole bytes of the destination and share none of them: `to` in bytes, `from` in bits. */
  readonly rows: readonly CopyAxis[];
  /** Bytes of the destination that a row spans. */
  readonly width: number;
  /** The axes of a row: `to` in elements, `from` in bits. Each step exceeds the reach of all later axes. */
  readonly axes: readonly CopyAxis[];
  /** Bits from the first byte of the destination to the first element; less than 8. */
  readonly toBit: number;
  /** The same of the source. */
  readonly fromBit: number;
}

/** One kernel of a copy. */
export interface PackedPart {
  readonly kind: "packed";
  readonly problem: PackedRows;
  /** Bytes from the source's first element to the byte in which the part's first one begins. */
  readonly fromOffset: number;
  /** The same of the destination. */
  readonly toOffset: number;
}

// law copy/planPacked: copy/packed_copy
/** The kernels of a copy: one, unless axes of the destination are interleaved. */
export function planPacked({ bits, axes, from, to }: PackedProblem): PackedPart[] {
  const nested: CopyAxis[] = [];
  let starts = [{ from, to }];
  let reach = 0;
  for (const axis of axes.toReversed()) {
    if (axis.to > reach) {
      nested.unshift(axis);
      reach += axis.to * (axis.extent - 1);
      continue;
    }
    // Division could not tell which element lies at a position: such axes, which are rare, are walked step by step.
    starts = starts.flatMap((start) =>
      Array.from({ length: axis.extent }, (_, i) => ({
        from: start.from + i * axis.from * bits,
        to: start.to + i * axis.to * bits,
      }))
    );
  }
  return starts.map((start) => partOf(bits, nested, start.from, start.to));
}

// law copy/partOf: copy/packed_copy
function partOf(bits: number, nested: readonly CopyAxis[], from: number, to: number): PackedPart {
  const [fromOffset, toOffset] = [Math.floor(from / 8), Math.floor(to / 8)];
  const [fromBit, toBit] = [from - fromOffset * 8, to - toOffset * 8];
  const rows: CopyAxis[] = [];
  const axes = nested.map((axis) => ({ ...axis, from: axis.from * bits }));
  for (let axis = axes[0]; axis !== undefined; axis = axes[0]) {
    const step = axis.to * bits / 8;
    if (!Number.isInteger(step) || step < widthOf(bits, axes.slice(1), toBit)) break;
    rows.push({ ...axis, to: step });
    axes.shift();
  }
  const width = widthOf(bits, axes, toBit);
  return { kind: "packed", problem: { bits, rows, width, axes, toBit, fromBit }, fromOffset, toOffset };
}

/** Bytes that contain elements or lie between them. */
function widthOf(bits: number, axes: readonly CopyAxis[], toBit: number): number {
  const last = axes.reduce((reach, { extent, to }) => reach + (extent - 1) * to, 0);
  return Math.ceil((toBit + (last + 1) * bits) / 8);
}
