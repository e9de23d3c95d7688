/**
 * What a console shows of an object, and names that programs give theirs. All rooms use this.
 *
 * @module
 */
import { show } from "./shape.ts";

/** By which Deno, and Node and Bun, ask an object for what to show. */
const symbols = [Symbol.for("Deno.customInspect"), Symbol.for("nodejs.util.inspect.custom")] as const;

/** A class, of which only the instances matter here. */
interface Class<T> {
  readonly prototype: T;
}

// law layout/showAs: layout/inspect
/**
 * Makes the console show the instances of a class as a person wants them: by a line, or a few. Called once, in a
 * `static` block of the class, so that private members can be read. The two methods do not show in the class' type.
 *
 * Whatever the function throws is shown instead: a console must not fail over what it is to show.
 *
 * @param describe what comes behind the name of the class; it neither waits nor asks the driver about running work
 */
export function showAs<T extends object>(of: Class<T>, describe: (object: T) => string): void {
  function inspect(this: T, ...given: readonly unknown[]): string {
    try {
      return `${classNameOf(this)} ${describe(this)}`.replaceAll("\n", `\n${indentOf(given)}`);
    } catch (error) {
      return `${classNameOf(this)} (${error instanceof Error ? error.message.split("\n")[0] : String(error)})`;
    }
  }
  for (const symbol of symbols) {
    Object.defineProperty(of.prototype, symbol, { value: inspect, writable: true, configurable: true });
  }
}

// law layout/indentOf: layout/inspect
/**
 * What the lines after the first begin with, inside of another object. Node, and Bun in `util.inspect`, put it there
 * themselves. Deno says how many spaces it is, and Bun's console, which passes no more than two options, how deep it
 * may still go: two spaces for each level that it has gone.
 *
 * @param given what the runtime calls the method with: options, or the depth that is left and options
 */
function indentOf([first, second]: readonly unknown[]): string {
  const options = typeof first === "object" ? first : second;
  if (typeof options !== "object" || options === null) return "";
  if ("indentationLvl" in options) return spaces(options.indentationLvl);
  if (!("depth" in options) || "showHidden" in options) return "";
  return typeof options.depth === "number" && typeof first === "number" ? spaces(2 * (options.depth - first)) : "";
}

/** None, if it is no number of spaces: depths may be infinite. */
function spaces(count: unknown): string {
  return typeof count === "number" && count > 0 && count < 1000 ? " ".repeat(count) : "";
}

function classNameOf(object: object): string {
  const name: unknown = object.constructor?.name;
  return typeof name === "string" && name !== "" ? name : "Object";
}

/** Bytes as a person reads them: `512 bytes`, `1.5 KiB`, `79.6 GiB`. */
export function showBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} byte${bytes === 1 ? "" : "s"}`;
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length);
  const value = bytes / 1024 ** power;
  return `${Number(value.toFixed(1))} ${UNITS[power - 1]}`;
}

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/** Names by object, because few objects have one: a field of each would cost those that have none. */
const names = new WeakMap<object, string>();

// law layout/giveName: layout/inspect
/**
 * Gives an object a name, which errors and reports say.
 *
 * @param name undefined for none
 * @throws {TypeError} if it is no string, or an empty one
 */
export function giveName(object: object, name: string | undefined): void {
  if (name === undefined) return;
  checkName(name);
  names.set(object, name);
}

/** @throws {TypeError} if a name is no string, or an empty one */
export function checkName(name: string): void {
  if (typeof name === "string" && name !== "") return;
  throw new TypeError(`Expected a name to be a string that is not empty, got ${show(name)}`);
}

/** The name that an object was given; null if it has none. */
export function nameOf(object: object): string | null {
  return names.get(object) ?? null;
}

/** A name as it stands behind what it is the name of: ` "weights"`; nothing if there is none. */
export function quoted(name: string | null): string {
  return name === null ? "" : ` ${JSON.stringify(name)}`;
}
