/**
 * Checks of what programs pass: options, names, plain objects. All rooms use this.
 *
 * @module
 */
import { nearestOf } from "./nearest.ts";
import { isOfOtherCopy, show, showGiven } from "./show.ts";

/** The names of options: a table that does not compile if a name is missing or is not an option. */
export type OptionNames<Options> = { readonly [Name in keyof Options]-?: true };

/** No options: the default in calls so frequent that checking an empty object would cost measurably. */
export const none: Readonly<Record<never, never>> = Object.freeze({});

// law layout/checkOptions: options
/**
 * Throws unless all options are known: a misspelled option would be ignored silently.
 *
 * @throws {TypeError} that names the nearest known one
 */
export function checkOptions<Options extends object>(options: Options, known: OptionNames<Options>): void {
  if (options === none) return;
  if (typeof options !== "object" || options === null) throw noOptions(options, known);
  for (const name in options) {
    if (known[name] !== true) throw isOfOtherCopy(options) ? noOptions(options, known) : unknownOption(name, known);
  }
}

/** Whether a value is the name of one of a table's own entries. Nothing of it is called, whatever it is. */
export function isNameIn<Table extends object>(table: Table, name: unknown): name is keyof Table {
  return typeof name === "string" && Object.hasOwn(table, name);
}

function noOptions(value: unknown, known: object): TypeError {
  return new TypeError(`Expected an object of options (${Object.keys(known).join(", ")}), got ${show(value)}`);
}

/** The error for an unknown option. */
export function unknownOption(name: string, known: object): TypeError {
  const names = Object.keys(known);
  const nearest = nearestOf(name, names);
  // Of a name with more letters wrong than right, any guess would be a bad one.
  const guess = nearest.letters <= Math.ceil(name.length / 2) ? `: did you mean ${nearest.name}?` : ".";
  const others = names.length === 1 ? `The only one is ${names[0]}.` : `The options are ${names.join(", ")}.`;
  return new TypeError(`Unknown option ${show(name)}${guess} ${others}`);
}

/** Maximum number of names to list: the suggestion comes before them, and thousands would bury it. */
const listed = 20;

// law layout/namesNear: vortex/file/filter, arrow/array
/**
 * The end of an error about a name that does not exist: a suggestion of what was meant, and the names that do.
 *
 * @param what what has these names: `columns`
 */
export function namesNear(given: unknown, names: readonly string[], what: string): string {
  if (names.length === 0) return ": there are none";
  const { name: near, letters } = nearestOf(String(given), names);
  const meant = letters <= 2 && 2 * letters <= near.length ? `: did you mean ${show(near)}?` : ".";
  const more = names.length > listed ? ` and ${names.length - listed} more` : "";
  return `${meant} The ${what} are ${names.slice(0, listed).map(show).join(", ")}${more}`;
}

// law layout/checkBoolean: options
/**
 * Throws unless an option is true, false or not given: `"no"` would count as true.
 *
 * @throws {TypeError}
 */
export function checkBoolean(name: string, value: unknown): void {
  if (value !== undefined && typeof value !== "boolean") throw noBoolean(name, value);
}

function noBoolean(name: string, value: unknown): TypeError {
  return new TypeError(`Expected ${name} to be true or false, got ${showGiven(value)}`);
}

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
