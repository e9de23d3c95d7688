/**
 * Calling the callbacks that foreign structs carry.
 *
 * It is the C library that calls: `bsearch` calls its comparison once where there is one element, with the key as the
 * first argument and the element as the second, and finds the element if the comparison returns 0. Deno calls an
 * address by itself in 0.6 us, and a function that is bound by its name in 5 ns.
 *
 * @module
 */
import { libc } from "../ffi/mod.ts";

/** Calls a release callback or deleter: `void (*)(struct *)`. */
export function callRelease(callback: bigint, struct: bigint): void {
  libc().callers.bsearch(struct, struct, 1n, 1n, callback);
}

/** Calls an `int (*)(void *, void *)`. Neither argument is NULL. @returns whether it has returned 0 */
export function callReturnsZero(callback: bigint, first: bigint, second: bigint): boolean {
  return libc().callers.bsearch(first, second, 1n, 1n, callback) !== 0n;
}
