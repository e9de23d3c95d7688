/**
 * Calling the release callback or deleter that a foreign struct carries.
 *
 * @module
 */
import { ffiPort } from "../ffi/port.ts";

/** Callbacks by address. A library has a few, and its code is never unloaded. */
const known = new Map<bigint, (struct: bigint) => void>();

/** Calls a callback `void (*)(struct *)`. */
export function callRelease(callback: bigint, struct: bigint): void {
  let call = known.get(callback);
  if (call === undefined) {
    call = ffiPort().functionAt(callback, { args: ["ptr"], returns: "void" });
    known.set(callback, call);
  }
  call(struct);
}
