/**
 * Whether Python's consumers have released anything since the last poll: read from memory, because to ask Python takes
 * as long as ten calls.
 *
 * @module
 */
import { libc, NativeArena } from "../ffi/mod.ts";
import type { Interpreter } from "./interpreter.ts";

/** Looks at the counters of guest/release_counters.py. Needs the interpreter's lock. */
export class ReleaseMemory {
  readonly #python: Interpreter;
  /** The list of capsules whose struct was not taken at the last poll; borrowed from the helpers. */
  readonly #unclaimed: bigint;
  /** The list of the pieces of memory with counters; borrowed from the helpers. */
  readonly #slabs: bigint;
  /** Where they are; they never move, and no one is freed. */
  #addresses: readonly bigint[] = [];
  /** How long each is, in bytes. */
  readonly #length: bigint;
  /** Zeros of the same length. */
  readonly #zeros: bigint;

  constructor(python: Interpreter) {
    this.#python = python;
    this.#unclaimed = python.helper("unclaimed");
    this.#slabs = python.helper("counter_slabs");
    const length = Number(python.readInteger(python.helper("counter_slab_bytes")));
    this.#length = BigInt(length);
    this.#zeros = new NativeArena().bytes(length).address; // there is one interpreter in a process
  }

  // law python/ReleaseMemory.hasChanged: python/export_array, python/release_memory
  /** Whether a poll may find anything: a counter that is not zero, or a capsule that may be gone. */
  hasChanged(): boolean {
    const { PyList_Size } = this.#python.api.lists;
    if (PyList_Size(this.#unclaimed) > 0n) return true;
    if (PyList_Size(this.#slabs) !== BigInt(this.#addresses.length)) this.#addresses = this.#find();
    return this.#addresses.some((address) => libc().memory.memcmp(address, this.#zeros, this.#length) !== 0);
  }

  #find(): bigint[] {
    const python = this.#python;
    const list = python.callHelper("counter_addresses", []);
    try {
      const { PyList_Size, PyList_GetItem } = python.api.lists;
      return Array.from(
        { length: Number(PyList_Size(list)) },
        (_, i) => BigInt(python.readInteger(PyList_GetItem(list, BigInt(i)))),
      );
    } finally {
      python.release(list);
    }
  }
}
