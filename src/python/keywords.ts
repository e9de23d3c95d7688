/**
 * Keyword arguments.
 *
 * @module
 */
import { show, showAs, showGiven } from "../layout/mod.ts";
import { handleOf } from "./handle.ts";

/** Keyword arguments. */
export class Keywords {
  /** The arguments by name. */
  readonly values: Readonly<Record<string, unknown>>;

  /** Use {@linkcode kwargs}. */
  constructor(values: Readonly<Record<string, unknown>>) {
    this.values = values;
  }

  static {
    showAs(Keywords, ({ values }) => {
      const named = Object.entries(values).map(([name, value]) => `${name}: ${inShort(value)}`);
      return named.length === 0 ? "{}" : `{ ${named.join(", ")} }`;
    }, "fields");
  }
}

/**
 * Keyword arguments, passed as the last argument of a call: `torch.sum(view, kwargs({ dim: 0 }))`. A dict of Python
 * will do.
 *
 * @throws {TypeError} for anything but an object of them
 */
export function kwargs(values: Readonly<Record<string, unknown>>): Keywords {
  const isObject = typeof values === "object" || (typeof values === "function" && handleOf(values) !== undefined);
  if (!isObject || values === null || Array.isArray(values) || values instanceof Map) {
    const way = values instanceof Map ? ". Object.fromEntries(map) makes one" : "";
    throw new TypeError(`Expected keyword arguments as an object, as { dim: 0 }, got ${showGiven(values)}${way}`);
  }
  return new Keywords(values);
}

/** A short description of a value: Python is not called for its objects, and arrays may be long. */
function inShort(value: unknown): string {
  if (typeof value === "function") return handleOf(value) === undefined ? "a function" : "a PyObject";
  return Array.isArray(value) ? `an array of ${value.length}` : show(value);
}
