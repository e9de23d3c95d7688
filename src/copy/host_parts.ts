/**
 * Splits a large copy into parts, one for each of several threads: with the memory traffic of two or more cores, one
 * core is no longer the limit.
 *
 * @module
 */
import type { HostPlan, PlacedMove } from "./host_plan.ts";

/**
 * Minimum bytes per thread: two are faster from 16 MiB on, including their start and end, slightly for a single run.
 */
const minBytesPerThread = 8 * 2 ** 20;

/** More threads than this find the memory saturated. */
const maxThreads = 8;

/** Moves of fewer bytes are not split, such as those at the edges of tiles. */
export const minSplit = 2 ** 20;

// law copy/threadsFor: copy/host_parts
/**
 * How many threads a copy is worth.
 *
 * @param cpus number of processors; default: those of this machine
 */
export function threadsFor(
  { run, runs, isFree }: Pick<HostPlan, "run" | "runs" | "isFree">,
  cpus?: number,
): number {
  const worth = Math.min(Math.floor(run * runs / minBytesPerThread), maxThreads);
  return worth < 2 || !isFree ? 1 : Math.min(cpus ?? navigator.hardwareConcurrency, worth);
}

// law copy/splitMoves: copy/host_parts
/**
 * Splits moves among threads. Their elements in the destination are disjoint: they may be made in any order.
 *
 * @param least minimum bytes of a move that is split
 * @returns the moves of each thread; the first thread's include moves that were not split
 */
export function splitMoves(moves: readonly PlacedMove[], threads: number, least = minSplit): PlacedMove[][] {
  const shares: PlacedMove[][] = Array.from({ length: threads }, () => []);
  for (const move of moves) {
    const parts = bytesOf(move) < least ? [move] : partsOf(move, threads);
    for (const [i, part] of parts.entries()) shares[i]?.push(part);
  }
  return shares;
}

function bytesOf({ bytes, axes }: PlacedMove): number {
  return axes.reduce((product, { extent }) => product * extent, bytes);
}

/** At most `count` parts along the longest axis: of two long ones the outer one, whose parts are contiguous. */
function partsOf(move: PlacedMove, count: number): PlacedMove[] {
  const { axes, bytes, toOffset, fromOffset } = move;
  if (axes.length === 0) { // a run; a fill has an axis
    return rangesOf(bytes, count).map(({ start, length }) => ({
      ...move,
      bytes: length,
      toOffset: toOffset + start,
      fromOffset: fromOffset + start,
    }));
  }
  const longest = axes.reduce((one, other) => other.extent > one.extent ? other : one);
  const outer = axes.find(({ extent }) => extent >= minStepsPerPart * count) ?? longest;
  return rangesOf(outer.extent, count).map(({ start, length }) => ({
    ...move,
    axes: axes.map((axis) => axis === outer ? { ...axis, extent: length } : axis),
    toOffset: toOffset + start * outer.to,
    fromOffset: fromOffset + start * outer.from,
  }));
}

/** An axis with this many steps per part gives parts of about equal size. */
const minStepsPerPart = 8;

/** Ranges of about equal size, none of them empty. */
export function rangesOf(extent: number, count: number): { readonly start: number; readonly length: number }[] {
  const starts = Array.from({ length: count }, (_, i) => Math.floor(i * extent / count));
  return starts.map((start, i) => ({ start, length: (starts[i + 1] ?? extent) - start }))
    .filter(({ length }) => length > 0);
}
