/**
 * Looking after memory that is out: consumers on other threads can only leave a mark when they release, so somebody has
 * to look. Every allocation does, before it asks for more.
 *
 * @module
 */

const reclaimers: (() => void)[] = [];

/** Registers a function that gives back what has been released. */
export function onReclaim(reclaim: () => void): void {
  reclaimers.push(reclaim);
}

/** Gives back what has been released meanwhile. */
export function reclaim(): void {
  for (const one of reclaimers) one();
}
