/**
 * What the classes of all rooms share: how a console shows their objects, the names that programs give to these, and
 * the check that no program makes one by `new`, which the compiler tells typed programs only.
 *
 * @module
 */
import { packageCopy, show, thisCopy } from "./show.ts";

/** The members by which Deno, and Node and Bun, let an object customize its inspection. */
const symbols = [Symbol.for("Deno.customInspect"), Symbol.for("nodejs.util.inspect.custom")] as const;

/** A class; only its instances matter here. */
interface Class<T> {
  readonly prototype: T;
}

/** The methods that {@linkcode showAs} has made: a derived class that is shown in another way replaces them. */
const made = new WeakSet<object>();

// law layout/showAs: layout/inspect
/**
 * Makes the console show the instances of a class for human readers: in a line, or a few. As text, `${object}`, they
 * are the same, unless the class has a `toString` of its own, and so they are in JSON, as in a log: what holds memory,
 * a handle or a stream has no other value there. Called once, in a `static` block of the class, so that private members
 * can be read. The methods do not appear in the class's type.
 *
 * If the function throws, the error is shown instead: a console must not fail because of the object it shows.
 *
 * @param describe returns the text after the class name; it neither waits nor queries the driver about running work
 * @param inJson `"fields"` for a class of plain values, whose JSON has its fields
 */
export function showAs<T extends object>(
  of: Class<T>,
  describe: (object: T) => string,
  inJson: "text" | "fields" = "text",
): void {
  function toText(this: T): string {
    try {
      return `${classNameOf(this)} ${describe(this)}`;
    } catch (error) {
      return `${classNameOf(this)} (${error instanceof Error ? error.message.split("\n")[0] : String(error)})`;
    }
  }
  function inspect(this: T, ...given: readonly unknown[]): string {
    return toText.call(this).replaceAll("\n", `\n${indentOf(given)}`);
  }
  made.add(toText);
  const define = (name: PropertyKey, value: unknown) =>
    Object.defineProperty(of.prototype, name, { value, writable: true, configurable: true });
  define(packageCopy, thisCopy);
  for (const symbol of symbols) define(symbol, inspect);
  if (isToBeMade(of.prototype, "toString")) define("toString", toText);
  if (inJson === "text" && isToBeMade(of.prototype, "toJSON")) define("toJSON", toText);
}

/** Whether a class has no such method, or one that was made for the class that it is derived from. */
function isToBeMade(prototype: object, name: "toString" | "toJSON"): boolean {
  const method: unknown = Reflect.get(prototype, name);
  return typeof method !== "function" || method === Object.prototype.toString || made.has(method);
}

// law layout/indentOf: layout/inspect
/**
 * The indent of the lines after the first, inside another object. Node, and Bun in `util.inspect`, add it themselves.
 * Deno passes the number of spaces, and Bun's console, which passes no more than two options, the remaining depth: two
 * spaces for each level descended.
 *
 * @param given the runtime's arguments: options, or the remaining depth and options
 */
function indentOf([first, second]: readonly unknown[]): string {
  const options = typeof first === "object" ? first : second;
  if (typeof options !== "object" || options === null) return "";
  if ("indentationLvl" in options) return spaces(options.indentationLvl);
  if (!("depth" in options) || "showHidden" in options) return "";
  return typeof options.depth === "number" && typeof first === "number" ? spaces(2 * (options.depth - first)) : "";
}

/** No spaces if the count is not a plausible one: depths may be infinite. */
function spaces(count: unknown): string {
  return typeof count === "number" && count > 0 && count < 1000 ? " ".repeat(count) : "";
}

function classNameOf(object: object): string {
  const name: unknown = object.constructor?.name;
  return typeof name === "string" && name !== "" ? name : "Object";
}

/** Bytes in human-readable form: `512 bytes`, `1.5 KiB`, `79.6 GiB`. */
export function showBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} byte${bytes === 1 ? "" : "s"}`;
  const power = Math.min(Math.floor(Math.log2(bytes) / 10), UNITS.length);
  const value = bytes / 1024 ** power;
  return `${Number(value.toFixed(1))} ${UNITS[power - 1]}`;
}

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/** Names by object, because few objects have one: a field would cost all objects without a name. */
const names = new WeakMap<object, string>();

// law layout/giveName: layout/inspect
/**
 * Gives an object a name, which errors and reports include.
 *
 * @param name undefined for none
 * @throws {TypeError} if it is not a string, or is empty
 */
export function giveName(object: object, name: string | undefined): void {
  if (name === undefined) return;
  checkName(name);
  names.set(object, name);
}

/** @throws {TypeError} if a name is not a string, or is empty */
export function checkName(name: string): void {
  if (typeof name === "string" && name !== "") return;
  throw new TypeError(`Expected a name to be a non-empty string, got ${show(name)}`);
}

/** The name given to an object; null if it has none. */
export function nameOf(object: object): string | null {
  return names.get(object) ?? null;
}

/** A name as it follows a description of its object: ` "weights"`; empty if there is none. */
export function quoted(name: string | null): string {
  return name === null ? "" : ` ${JSON.stringify(name)}`;
}

// law layout/checkMade: public/new
/**
 * The first line of a constructor that only this package calls.
 *
 * @param given a parameter that only this package passes, and always passes
 * @param way what to call instead
 * @throws {TypeError} if it is missing
 */
export function checkMade(given: unknown, name: string, way: string): void {
  if (given === undefined) throw notMade(name, way);
}

/** The error of {@linkcode checkMade}, for constructors that run for each import and check inline. */
export function notMade(name: string, way: string): TypeError {
  return new TypeError(`Cannot call new ${name}(): use ${way}`);
}
