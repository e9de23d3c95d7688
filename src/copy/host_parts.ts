/**
 * A large copy in parts, one for each of several threads: from two cores' worth of memory traffic on, one core is not
 * what limits a copy any more.
 *
 * @module
 */
import type { HostPlan, PlacedMove } from "./host_plan.ts";

/** Bytes from which on two threads win, their start and end included: with 16 MiB a little, if it is one run. */
const worthThreads = 16 * 2 ** 20;

/** Bytes that a thread has at least. */
const leastOfThread = 8 * 2 ** 20;

/** More threads than these find the memory busy. */
const mostThreads = 8;

/** Moves of fewer bytes are left whole, such as those at the edges of tiles. */
export const leastSplit = 2 ** 20;

/**
 * How many threads a copy is worth.
 *
 * @param cpus how many there are; by default those of this machine
 */
export function threadsFor(
  { run, runs, isFree }: Pick<HostPlan, "run" | "runs" | "isFree">,
  cpus?: number,
): number {
  const bytes = run * runs;
  if (bytes < worthThreads || !isFree) return 1;
  return Math.max(1, Math.min(cpus ?? navigator.hardwareConcurrency, mostThreads, Math.floor(bytes / leastOfThread)));
}

// law copy/splitMoves: copy/host_parts
/**
 * Splits moves among threads, whose elements in the destination are apart: they may be made in any order.
 *
 * @param least bytes of a move that is split
 * @returns for each thread its moves, the first one's with what was not split
 */
export function splitMoves(moves: readonly PlacedMove[], threads: number, least = leastSplit): PlacedMove[][] {
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

/** As many parts as asked for, or fewer, along the longest axis: of two the outer one, whose parts lie together. */
function partsOf(move: PlacedMove, count: number): PlacedMove[] {
  const { axes, bytes, toOffset, fromOffset } = move;
  if (axes.length === 0) { // a run; what is filled has an axis
    return rangesOf(bytes, count).map(({ start, length }) => ({
      ...move,
      bytes: length,
      toOffset: toOffset + start,
      fromOffset: fromOffset + start,
    }));
  }
  const longest = axes.reduce((one, other) => other.extent > one.extent ? other : one);
  const outer = axes.find(({ extent }) => extent >= enoughParts * count) ?? longest;
  return rangesOf(outer.extent, count).map(({ start, length }) => ({
    ...move,
    axes: axes.map((axis) => axis === outer ? { ...axis, extent: length } : axis),
    toOffset: toOffset + start * outer.to,
    fromOffset: fromOffset + start * outer.from,
  }));
}

/** An axis of so many for each part gives parts that are about equal. */
const enoughParts = 8;

/** Ranges that are about equal, and none of them empty. */
export function rangesOf(extent: number, count: number): { readonly start: number; readonly length: number }[] {
  const starts = Array.from({ length: count }, (_, i) => Math.floor(i * extent / count));
  return starts.map((start, i) => ({ start, length: (starts[i + 1] ?? extent) - start }))
    .filter(({ length }) => length > 0);
}
