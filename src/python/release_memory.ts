/**
 * Whether Python's consumers have released anything since the last poll: read from memory, because to ask Python takes
 * as long as ten calls.
 *
 * @module
 */
import { ffiPort, libc, NativeArena } from "../ffi/mod.ts";
import type { Interpreter } from "./interpreter.ts";

/** Looks at the counters of guest/release_counters.py. Needs the interpreter's lock, but where it is said not to. */
export class ReleaseMemory {
  readonly #python: Interpreter;
  /** How many pieces of memory with counters there are, how many counters in use, and how many unclaimed capsules. */
  readonly #numbers: Int32Array<ArrayBuffer>;
  /** Where the pieces are; they never move, and none is freed. */
  #addresses: readonly bigint[] = [];
  /** How long each is, in bytes. */
  readonly #length: bigint;
  /** Zeros of the same length. */
  readonly #zeros: bigint;

  constructor(python: Interpreter) {
    this.#python = python;
    const [length, numbers] = (["counter_slab_bytes", "counter_numbers"] as const).map((name) =>
      python.readInteger(python.helper(name))
    );
    this.#numbers = new Int32Array(ffiPort().memory(BigInt(numbers ?? 0), 12)); // as long as the interpreter
    this.#length = BigInt(length ?? 0);
    this.#zeros = new NativeArena().bytes(Number(length)).address; // there is one interpreter in a process
  }

  // law python/ReleaseMemory.hasChanged: python/host_exports, python/export_array
  /** Whether a poll may find anything: a counter that is not zero, or a capsule that may be gone. */
  hasChanged(): boolean {
    const numbers = this.#numbers;
    if (numbers[2] !== 0) return true;
    if (numbers[1] === 0) return false;
    if (numbers[0] !== this.#addresses.length) this.#addresses = this.#find();
    return this.#hasCounted();
  }

  // law python/ReleaseMemory.mayHaveChanged: python/host_exports
  /** As {@linkcode hasChanged}, without the lock: also true where the lock is needed to find out. */
  mayHaveChanged(): boolean {
    const numbers = this.#numbers;
    if (numbers[2] !== 0) return true;
    return numbers[1] !== 0 && (numbers[0] !== this.#addresses.length || this.#hasCounted());
  }

  /** Whether a counter that is known is not zero. */
  #hasCounted(): boolean {
    const { memcmp } = libc().memory;
    for (const address of this.#addresses) {
      if (memcmp(address, this.#zeros, this.#length) !== 0) return true;
    }
    return false;
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
