/**
 * Calls the callbacks in foreign structs.
 *
 * The C library makes the call: given one element, `bsearch` calls its comparison once, with the key as the first
 * argument and the element as the second, and finds the element if the comparison returns 0. Deno takes 0.6 us to call
 * a bare address, and 5 ns to call a function bound by name.
 *
 * @module
 */
import { libc } from "../ffi/mod.ts";

/** Calls a release callback or deleter: `void (*)(struct *)`. */
export function callRelease(callback: bigint, struct: bigint): void {
  libc().callers.bsearch(struct, struct, 1n, 1n, callback);
}

/** Calls an `int (*)(void *, void *)`. Neither argument is NULL. @returns whether it returned 0 */
export function callReturnsZero(callback: bigint, first: bigint, second: bigint): boolean {
  return libc().callers.bsearch(first, second, 1n, 1n, callback) !== 0n;
}
