/**
 * Decides how a copy on the device is done, from layouts alone; `device_copy.ts` carries it out, and
 * `copy_kernel_cache.ts` generates the kernel of a plan that needs one.
 *
 * @module
 */
import { bytesOf } from "./conversion.ts";
import type { CoalescedCopy, CopyAxis, PackedProblem } from "./coalesced_copy.ts";
import type { PackedPart } from "./packed_plan.ts";

/** Rows of bytes, which the driver copies with pitches. */
export interface Pitched {
  /** Bytes of a row. */
  readonly width: number;
  /** Rows of a slice. */
  readonly height: number;
  /** Slices. */
  readonly depth: number;
  /** Bytes from row to row. */
  readonly fromPitch: number;
  readonly toPitch: number;
  /** Rows from slice to slice. */
  readonly fromHeight: number;
  readonly toHeight: number;
}

/** A kernel that moves tiles through shared memory: it reads along one axis and writes along another. */
export interface Tiled {
  /** Index of the axis along which the kernel reads; it writes along the last one. */
  readonly along: number;
  /** Elements of the tile that one thread moves in one word. */
  readonly lanes: 1 | 2 | 4;
  /** Words along a row of the tile; each side has `lanes` times as many elements. */
  readonly cells: 32 | 64;
  /** Threads that move a tile. */
  readonly threads: number;
}

/** How a copy is done. */
export type CopyPlan =
  | { readonly kind: "nothing" }
  | { readonly kind: "contiguous"; readonly bytes: number }
  | { readonly kind: "pitched"; readonly box: Pitched }
  | { readonly kind: "strided"; readonly problem: CoalescedCopy }
  | { readonly kind: "tiled"; readonly problem: CoalescedCopy; readonly tile: Tiled }
  | { readonly kind: "packed"; readonly problem: PackedProblem; readonly parts: readonly PackedPart[] };

/** Rows narrower than this are copied by a kernel where possible: the driver moves them one by one. */
const narrowRow = 512;

/** The largest pitch that the driver accepts, in bytes. */
const maxPitch = 2 ** 31 - 1;

/**
 * A sector of the L2 cache, in bytes: elements closer together than this are read just as efficiently without a tile.
 */
const sector = 32;

/** Shorter axes leave most of a tile empty. */
const shortAxis = 8;

/**
 * Decides how to copy.
 *
 * @param canLaunch whether a kernel can reach both sides; if not, the result is null for copies that only a kernel
 *   could do
 */
export function planDeviceCopy(problem: CoalescedCopy, canLaunch: boolean): CopyPlan | null {
  const { axes, word, words, conversion } = problem;
  if (words === 0) return { kind: "nothing" };
  if (conversion === null && isContiguous(axes)) return { kind: "contiguous", bytes: words * word };
  const box = conversion === null ? pitched(problem) : null;
  if (box !== null && (!canLaunch || box.width >= narrowRow)) return { kind: "pitched", box };
  if (!canLaunch) return null;
  const tile = tiled(problem);
  return tile === null ? { kind: "strided", problem } : { kind: "tiled", problem, tile };
}

function isContiguous(axes: readonly CopyAxis[]): boolean {
  const [only, ...more] = axes;
  return only === undefined || (more.length === 0 && only.to === 1 && only.from === 1);
}

/** Plans two or three axes with dense rows, within the limits of the driver's pitches. */
function pitched({ axes, word }: CoalescedCopy): Pitched | null {
  const run = axes.at(-1);
  if (run === undefined) return null;
  const isRow = run.to === 1 && run.from === 1;
  // Words with gaps on both sides are rows of one word each.
  const width = isRow ? run.extent * word : word;
  const [row, slice, ...more] = (isRow ? axes.slice(0, -1) : axes).toReversed();
  if (row === undefined || more.length > 0 || row.from <= 0) return null;
  const [fromPitch, toPitch] = [row.from * word, row.to * word];
  if (fromPitch < width || toPitch < width || Math.max(fromPitch, toPitch) > maxPitch) return null;
  const flat = { width, height: row.extent, fromPitch, toPitch };
  if (slice === undefined) return { ...flat, depth: 1, fromHeight: row.extent, toHeight: row.extent };
  const [fromHeight, toHeight] = [slice.from / row.from, slice.to / row.to];
  const fits = [fromHeight, toHeight].every((height) => Number.isInteger(height) && height >= row.extent);
  return fits ? { ...flat, depth: slice.extent, fromHeight, toHeight } : null;
}

// law copy/tiled: copy/device_copy
/**
 * Plans tiles if the axis along which elements are adjacent in the destination is not the one in the source. Without a
 * tile either the reads or the writes of adjacent threads would be far apart; through a tile in shared memory both are
 * coalesced.
 */
function tiled({ axes, word, fromWord, alignment, conversion }: CoalescedCopy): Tiled | null {
  const last = axes.length - 1;
  const inner = axes[last];
  if (inner === undefined || Math.abs(inner.from) * fromWord <= sector) return null;
  let along = -1;
  axes.forEach(({ extent, from }, axis) => {
    if (axis === last || from === 0 || extent < shortAxis) return;
    const best = axes[along];
    if (best === undefined || Math.abs(from) < Math.abs(best.from)) along = axis;
  });
  const other = axes[along];
  if (other === undefined || Math.abs(other.from) >= Math.abs(inner.from) || inner.extent < shortAxis) return null;
  const lanes = alignment % 4 === 0 && conversion === null ? lanesOf(axes, word, along) : 1;
  const size = Math.max(word, fromWord);
  const cells = lanes === 1 && size <= 4 ? 64 : 32;
  return { along, lanes, cells, threads: (cells * lanes) ** 2 * size / perThread(size) };
}

/** Bytes of a tile that each thread moves: the fastest on an H200. */
function perThread(word: number): number {
  return word === 16 ? 64 : 32;
}

// law copy/lanesOf: copy/device_copy
/** How many narrow elements fit the four bytes that a thread moves, if the rows of both sides are divisible by that. */
function lanesOf(axes: readonly CopyAxis[], word: number, along: number): 1 | 2 | 4 {
  const lanes = word === 1 ? 4 : word === 2 ? 2 : 1;
  const inner = axes.length - 1;
  const divides = axes.every(({ extent, to, from }, axis) => {
    if (axis === inner) return extent % lanes === 0 && to === 1 && from % lanes === 0;
    if (axis === along) return extent % lanes === 0 && from === 1 && to % lanes === 0;
    return to % lanes === 0 && from % lanes === 0;
  });
  return divides ? lanes : 1;
}

/** Whether a plan needs a kernel. */
export function needsKernel({ kind }: CopyPlan): boolean {
  return kind === "strided" || kind === "tiled" || kind === "packed";
}

/** Describes a plan in words. */
export function explainPlan(plan: CopyPlan): string {
  switch (plan.kind) {
    case "nothing":
      return "nothing to copy";
    case "contiguous":
      return `one copy of ${plan.bytes} bytes by the driver`;
    case "pitched": {
      const { width, height, depth } = plan.box;
      const slices = depth === 1 ? "" : `${depth} slices of `;
      return `${slices}${height} rows of ${width} bytes by the driver`;
    }
    case "strided":
      return `a kernel over ${inWords(plan.problem)}, in the order of the destination`;
    case "tiled": {
      const { problem, tile } = plan;
      const side = tile.cells * tile.lanes;
      return `a kernel over ${inWords(problem)}, in tiles of ${side} x ${side} through shared memory`;
    }
    case "packed": {
      const { problem: { bits, axes }, parts } = plan;
      const extents = axes.map(({ extent }) => extent);
      const elements = extents.reduce((product, extent) => product * extent, 1);
      const kernels = parts.length === 1 ? "a kernel" : `${parts.length} kernels`;
      const shape = extents.length === 0 ? "" : ` as ${extents.join(" x ")}`;
      return `${kernels} over ${elements} elements of ${bits} bits${shape}, byte by byte of the destination`;
    }
  }
}

function inWords({ words, word, axes, conversion }: CoalescedCopy): string {
  const extents = axes.map(({ extent }) => extent);
  if (conversion === null) return `${words} words of ${word} bytes as ${extents.join(" x ")}`;
  const lanes = word / bytesOf(conversion.to);
  const inner = (extents.pop() ?? 1) * lanes;
  const atATime = lanes === 1 ? "" : ` ${lanes} at a time,`;
  const { from, to } = conversion;
  return `${words * lanes} elements, ${from.name} to ${to.name},${atATime} as ${[...extents, inner].join(" x ")}`;
}
