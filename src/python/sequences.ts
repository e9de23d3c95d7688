/**
 * Items of lists and tuples, many at a time: their addresses are copied out of the sequence, and numbers, strings,
 * booleans and None are read without running any Python code.
 *
 * All functions here need the interpreter's lock.
 *
 * @module
 */
import { FfiError, libc, NativeArena } from "../ffi/mod.ts";
import type { Interpreter } from "./interpreter.ts";
import { maxItems } from "./item_programs.ts";
import { Kind, notSimple } from "./kinds.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/** How much of a sequence object is searched to find where its items are, in 64-bit words. */
const headWords = 8;

/** Locates the items of lists and tuples. */
export class Sequences {
  readonly #python: Interpreter;
  readonly #address: bigint;
  /** Reading through a BigUint64Array takes Bun ten times as long. */
  readonly #words: DataView<ArrayBuffer>;
  /** Offset of the items' address in a list, in bytes. */
  readonly #listAt: bigint;
  /** Offset of the first item in a tuple, in bytes. */
  readonly #tupleAt: bigint;

  // law python/Sequences.constructor: python/sequences
  /**
   * Finds where the items are, using sequences of known objects.
   *
   * @throws {FfiError} if they are not at any of the possible places
   */
  constructor(python: Interpreter) {
    this.#python = python;
    const { address, bytes } = new NativeArena().bytes(8 * maxItems); // never freed: a process has one interpreter
    this.#address = address;
    this.#words = new DataView(bytes.buffer, bytes.byteOffset, 8 * maxItems);
    const { none, true: yes, false: no } = python.singletons;
    const items = [yes, none, no];
    const tuple = python.tuple(items.map((item) => python.retain(item)));
    const list = python.callHelper("list", [python.retain(tuple)]);
    const isAt = (start: bigint) => items.every((item, i) => wordOf(this.#copy(start, items.length), i) === item);
    // After the type: what may precede it, such as two counts of references, looks like an address.
    const places = Array.from({ length: headWords - items.length }, (_, i) => BigInt(python.typeAt + 8 * (i + 1)));
    const tupleAt = places.find((at) => isAt(tuple + at));
    // A list holds an address, and numbers that are not addresses: its length and its capacity.
    const listAt = places.find((at) => {
      const start = wordOf(this.#copy(list + at, 1), 0);
      return start > 0xffffn && isAt(start);
    });
    python.release(list);
    python.release(tuple);
    if (tupleAt === undefined || listAt === undefined) {
      throw new FfiError("Cannot use this Python: the items of its lists and tuples were not found");
    }
    this.#tupleAt = tupleAt;
    this.#listAt = listAt;
  }

  /** How many items there are. */
  sizeOf(object: bigint, kind: SequenceKind): number {
    const { lists, tuples } = this.#python.api;
    return Number(kind === Kind.list ? lists.PyList_Size(object) : tuples.PyTuple_Size(object));
  }

  // law python/Sequences.itemAt: python/sequences
  /** A new reference to an item. @throws {PythonError} if it no longer exists */
  itemAt(object: bigint, kind: SequenceKind, i: number): bigint {
    const python = this.#python;
    const { lists, tuples } = python.api;
    const at = BigInt(i);
    const item = kind === Kind.list ? lists.PyList_GetItem(object, at) : tuples.PyTuple_GetItem(object, at);
    return python.retain(python.check(item));
  }

  // law python/Sequences.readValues: python/sequences, python/kinds
  /**
   * Appends the values of items to an array, up to the first that cannot be read without running Python code.
   *
   * @param size how many items the sequence has
   * @param most how many to append at most
   */
  readValues(object: bigint, kind: SequenceKind, from: number, size: number, most: number, values: unknown[]): void {
    const count = Math.min(size - from, most, maxItems);
    if (count <= 0) return;
    const start = (kind === Kind.list ? wordOf(this.#copy(object + this.#listAt, 1), 0) : object + this.#tupleAt) +
      BigInt(8 * from);
    const { itemReader } = this.#python;
    const before = values.length;
    let words: DataView<ArrayBuffer> | null = null;
    let others = 1; // items read one by one before retrying machine code: doubled each time it reads nothing
    for (;;) {
      const at = values.length - before;
      itemReader?.readListed(start + BigInt(8 * at), count - at, values);
      others = values.length - before > at ? 1 : 2 * others;
      for (let k = 0; k < others; k++) {
        const i = values.length - before;
        if (i === count) return;
        words ??= this.#copy(start, count);
        const value = this.#quick(wordOf(words, i));
        if (value === notSimple) return;
        values.push(value);
      }
    }
  }

  /** The value of an object if it can be read at once; else {@linkcode notSimple}. */
  #quick(object: bigint): unknown {
    const python = this.#python;
    switch (python.kindOf(object)) {
      case Kind.float:
        return python.api.numbers.PyFloat_AsDouble(object);
      case Kind.int: {
        const number = python.api.numbers.PyLong_AsDouble(object);
        if (number !== -1) return Number.isSafeInteger(number) ? number : notSimple;
        python.api.errors.PyErr_Clear(); // it may be too large for a double
        return notSimple;
      }
      case Kind.text:
        return python.texts.readAtOnce(object) ?? notSimple;
      case Kind.none:
        return null;
      case Kind.bool:
        return object === python.singletons.true;
      default:
        return notSimple;
    }
  }

  /** Copies words of memory to a fixed buffer. */
  #copy(address: bigint, count: number): DataView<ArrayBuffer> {
    libc().memory.bcopy(address, this.#address, BigInt(8 * count));
    return this.#words;
  }
}

/** The two kinds of sequences. */
export type SequenceKind = typeof Kind.list | typeof Kind.tuple;

function wordOf(words: DataView<ArrayBuffer>, i: number): bigint {
  return words.getBigUint64(8 * i, littleEndian);
}
