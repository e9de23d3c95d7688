/**
 * The type of an object, read from the head that every object begins with: a copy of 16 bytes costs as much as one call
 * of the C API, and asking takes two.
 *
 * @module
 */
import { FfiError, libc, NativeArena } from "../ffi/mod.ts";

/** Of a head that is copied: the count of references and the type, wherever a version of Python has them. */
const headBytes = 32;

/** Reads types. A type is its address as a number, which is exact: addresses of programs have 47 bits, or 56. */
export class ObjectHeads {
  readonly #at: bigint;
  /** The copy of a head. */
  readonly #words: Uint32Array<ArrayBuffer>;
  /** Where the type is, in words of 32 bits. */
  readonly #word: number;
  /** How many bytes are copied. */
  readonly #length: bigint;
  readonly #copy: ReturnType<typeof libc>["memory"]["bcopy"];

  // law python/ObjectHeads.constructor: python/kinds
  /**
   * Finds where the type is.
   *
   * @param samples objects that live for ever, and their types
   * @throws {FfiError} if it is at no place in the head of all of them
   */
  constructor(samples: readonly (readonly [object: bigint, type: bigint])[]) {
    const { address, bytes } = new NativeArena().bytes(headBytes);
    this.#at = address;
    this.#copy = libc().memory.bcopy;
    this.#words = new Uint32Array(bytes.buffer, bytes.byteOffset, headBytes / 4);
    const places = Array.from({ length: headBytes / 8 }, (_, i) => 2 * i);
    const found = places.find((word) => samples.every(([object, type]) => this.#read(object, word) === Number(type)));
    if (found === undefined) throw new FfiError("Cannot use this Python: its objects do not begin with their type");
    this.#word = found;
    this.#length = BigInt(4 * (found + 2));
  }

  /** Where in an object its type is, in bytes. */
  get typeAt(): number {
    return 4 * this.#word;
  }

  /** The address of an object's type. */
  typeOf(object: bigint): number {
    this.#copy(object, this.#at, this.#length);
    const word = this.#word;
    return (this.#words[word] ?? 0) + (this.#words[word + 1] ?? 0) * 2 ** 32;
  }

  /** The number in a head at some place. No sample is shorter than two words of 64 bits. */
  #read(object: bigint, word: number): number {
    libc().memory.bcopy(object, this.#at, BigInt(4 * (word + 2)));
    return (this.#words[word] ?? 0) + (this.#words[word + 1] ?? 0) * 2 ** 32;
  }
}
