/**
 * Which JavaScript objects become Python dicts.
 *
 * @module
 */
import { isVortexForm } from "../arrow/mod.ts";
import { isArraySource } from "../view/mod.ts";

/** Whether a value is an object without a class. */
export function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Whether an object becomes a dict with string keys: it is plain, and does not describe an array. */
export function becomesDict(value: object): value is Readonly<Record<string, unknown>> {
  return isPlain(value) && !isArraySource(value) && !isVortexForm(value);
}
