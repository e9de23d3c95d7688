/**
 * Lists of floats in Python, made at once from doubles in a persistent buffer: item by item takes three times as long.
 *
 * @module
 */
import { NativeArena } from "../ffi/mod.ts";
import type { Interpreter } from "./interpreter.ts";

/** The smallest list for which this pays off, and the capacity of the buffer. Others go item by item. */
const [fewest, most] = [16, 4096];

/** Makes lists of floats. Needs the interpreter's lock. */
export class FloatLists {
  readonly #python: Interpreter;
  readonly #doubles: Float64Array<ArrayBuffer>;
  /** A Python function that makes a list of the first doubles; kept forever. */
  readonly #listOf: bigint;

  constructor(python: Interpreter) {
    this.#python = python;
    const { address, bytes } = new NativeArena().bytes(8 * most); // never freed: a process has one interpreter
    this.#doubles = new Float64Array(bytes.buffer, bytes.byteOffset, most);
    this.#listOf = python.callHelper("lists_of_doubles", [python.integer(address), python.smallInteger(most)]);
  }

  // law python/FloatLists.make: python/values, python/leaks
  /** A list of items that are all floats in Python; 0n if one of them may not be, or there are too few or too many. */
  make(items: readonly unknown[]): bigint {
    const count = items.length;
    if (count < fewest || count > most) return 0n;
    if (this.#python.isCalledBack) return 0n; // the enclosing call may be about to read the buffer
    const doubles = this.#doubles;
    for (let i = 0; i < count; i++) {
      const item = items[i];
      if (typeof item !== "number" || Number.isSafeInteger(item)) return 0n; // -0 also goes item by item
      doubles[i] = item;
    }
    return this.#python.call(this.#listOf, [this.#python.smallInteger(count)]);
  }
}
