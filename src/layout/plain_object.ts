/**
 * Objects without a class.
 *
 * @module
 */

// law layout/isPlainObject: python/values
/**
 * Whether a value is an object that no class has made: a literal, be it of another JavaScript context, such as one of
 * node:vm, or an object without a prototype.
 */
export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === Object.prototype || prototype === null || isRoot(prototype);
}

/** Whether an object is the `Object.prototype` of some context: it has no prototype itself, and this method. */
function isRoot(prototype: object): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, "isPrototypeOf");
}
