/**
 * Reclaims what has been released meanwhile: consumers on other threads can only count when they release, so this side
 * has to poll. Every allocation polls first.
 *
 * @module
 */
import { pollDeferred } from "./deferred_free.ts";
import { exportCount, pollAll, pollOthers } from "./exports.ts";
import { markClosed } from "./pageable_in_use.ts";

// law order/reclaim: order/deferred_free, order/refusals, dlpack/export, dlpack/programs, order/reclaim,
//   memory/collection
/** Frees and returns what has been released meanwhile. */
export function reclaim(): void {
  pollDeferred();
  markClosed();
  pollAll();
}

// law order/liveExports: python/export_array
/**
 * How many exports their consumers have not released. Reclaims the memory of those released. If arrays were exported to
 * Python, waits for the interpreter's lock.
 */
export function liveExports(): number {
  pollOthers();
  reclaim(); // which polls the exports here, too
  return exportCount();
}
