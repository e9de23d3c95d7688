/**
 * Calling the release callback or deleter that a foreign struct carries.
 *
 * @module
 */
import { libc } from "../ffi/libc.ts";

/**
 * Calls a callback `void (*)(struct *)`.
 *
 * It is the C library that calls: `bsearch` calls its comparison once where there is one element, with the key as the first
 * argument, which is the struct; nobody wants the result. Deno calls an address by itself in 0.6 us, and a function that is
 * bound by its name in 5 ns.
 */
export function callRelease(callback: bigint, struct: bigint): void {
  libc().callers.bsearch(struct, struct, 1n, 1n, callback);
}
