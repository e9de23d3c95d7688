/**
 * The type of an object, read from the head that every object begins with: copying 16 bytes costs as much as one call
 * of the C API, and asking for the type takes two.
 *
 * @module
 */
import { FfiError, libc, NativeArena } from "../ffi/mod.ts";

/** Most bytes of a head that are copied: the reference count and the type, wherever a Python version places them. */
const headBytes = 32;

/** Reads types. A type is its address as a number, which is exact: user space addresses have 47 bits, or 56. */
export class ObjectHeads {
  readonly #at: bigint;
  /** The copy of a head. */
  readonly #words: Uint32Array<ArrayBuffer>;
  /** Offset of the type, in 32-bit words. */
  readonly #word: number;
  /** How many bytes are copied. */
  readonly #length: bigint;
  readonly #copy: ReturnType<typeof libc>["memory"]["bcopy"];

  // law python/ObjectHeads.constructor: python/kinds
  /**
   * Finds where the type is.
   *
   * @param samples objects that live forever, and their types
   * @throws {FfiError} if no place in the head fits all of them
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

  /** Offset of the type in an object, in bytes. */
  get typeAt(): number {
    return 4 * this.#word;
  }

  /** The address of an object's type. */
  typeOf(object: bigint): number {
    this.#copy(object, this.#at, this.#length);
    const word = this.#word;
    return (this.#words[word] ?? 0) + (this.#words[word + 1] ?? 0) * 2 ** 32;
  }

  /** The number at a given place in a head. No sample is shorter than two 64-bit words. */
  #read(object: bigint, word: number): number {
    libc().memory.bcopy(object, this.#at, BigInt(4 * (word + 2)));
    return (this.#words[word] ?? 0) + (this.#words[word + 1] ?? 0) * 2 ** 32;
  }
}
