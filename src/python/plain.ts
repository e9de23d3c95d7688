/**
 * Which JavaScript objects become Python dicts.
 *
 * @module
 */
import { isVortexForm } from "../arrow/mod.ts";
import { isPlainObject } from "../layout/mod.ts";
import { isArraySource } from "../view/mod.ts";

/** Whether an object becomes a dict with string keys: it is plain, and does not describe an array. */
export function becomesDict(value: object): value is Readonly<Record<string, unknown>> {
  return isPlainObject(value) && !isArraySource(value) && !isVortexForm(value);
}
