/**
 * Copies of this package in one process: of two versions, under two names, or loaded again by a runtime that watches
 * files (`bun --hot`). The classes of one copy know nothing of the objects of another, which look the same.
 *
 * @module
 */

/** The member of every object that is shown by `showAs`: which copy made it. */
export const packageCopy: symbol = Symbol.for("causeway.copy");

/** What it is in this copy. */
export const thisCopy: object = Object.freeze({});

// law layout/isOfOtherCopy: public/two_copies
/** Whether another copy of this package made an object. */
export function isOfOtherCopy(value: unknown): boolean {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  try {
    const copy: unknown = Reflect.get(value, packageCopy);
    return copy !== undefined && copy !== thisCopy;
  } catch {
    return false; // a proxy that was revoked, or whose handler throws
  }
}
