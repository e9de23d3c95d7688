/**
 * What `resources_child.ts` measures and prints, and which growth is a leak.
 *
 * @module
 */

/** Growth per cycle in each of several windows, ascending. */
export interface Growth {
  /** Bytes that the C allocator has allocated. */
  readonly native: readonly number[];
  /** Bytes that JavaScript values take. */
  readonly script: readonly number[];
  /** Bytes of resident memory. */
  readonly resident: readonly number[];
  /** Open file descriptors. */
  readonly descriptors: readonly number[];
}

/**
 * Bytes that a cycle may lose. The smallest malloc leak is 32 bytes, every time, so half of that in the middle window
 * and over all of them is a leak; the runtime's own allocations come and go, on a busy machine by a hundred times as
 * much in a window. The garbage-collected heap is exact to a few bytes. Resident memory is not: pages stay until an
 * allocator returns them, so its best window counts. A leak outside both heaps is one of pages, 4096 bytes a cycle: in
 * Bun 10,000 contexts of UCX grow the process by 225 to 456 bytes a cycle in some runs and by nothing in others, with
 * both heaps unchanged.
 */
const limits = { native: 16, script: 32, resident: 1024 } as const;

/** What leaks, or null if everything stays flat. */
export function leak({ native, script, resident, descriptors }: Growth): string | null {
  if (!(lasting(native) < limits.native)) return "C memory is lost";
  if (!(lasting(script) < limits.script)) return "JavaScript keeps something";
  if (!((resident[0] ?? NaN) < limits.resident)) return "the process grows";
  return median(descriptors) <= 0 ? null : "files stay open";
}

/** The growth both in the middle window and over all of them. */
function lasting(sorted: readonly number[]): number {
  return Math.min(median(sorted), sorted.reduce((sum, one) => sum + one, 0) / sorted.length);
}

function median(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}
