/**
 * Whether Python's consumers have released anything since the last poll: read from memory, because asking Python takes
 * as long as ten calls.
 *
 * @module
 */
import { ffiPort, libc, NativeArena } from "../ffi/mod.ts";
import type { Interpreter } from "./interpreter.ts";

/** Reads the counters of guest/release_counters.py. Needs the interpreter's lock, except where documented. */
export class ReleaseMemory {
  readonly #python: Interpreter;
  /** The number of counter slabs, of counters in use, and of unclaimed capsules. */
  readonly #numbers: Int32Array<ArrayBuffer>;
  /** Addresses of the slabs, which never move and are never freed. */
  #addresses: readonly bigint[] = [];
  /** Size of each slab, in bytes. */
  readonly #length: bigint;
  /** Zeros of the same size. */
  readonly #zeros: bigint;

  constructor(python: Interpreter) {
    this.#python = python;
    const [length, numbers] = (["counter_slab_bytes", "counter_numbers"] as const).map((name) =>
      python.readInteger(python.helper(name))
    );
    this.#numbers = new Int32Array(ffiPort().memory(BigInt(numbers ?? 0), 12)); // lives as long as the interpreter
    this.#length = BigInt(length ?? 0);
    this.#zeros = new NativeArena().bytes(Number(length)).address; // never freed: a process has one interpreter
  }

  // law python/ReleaseMemory.hasChanged: python/host_exports, python/export_array
  /** Whether a poll may find anything: a nonzero counter, or a capsule that may be gone. */
  hasChanged(): boolean {
    const numbers = this.#numbers;
    if (numbers[2] !== 0) return true;
    if (numbers[1] === 0) return false;
    if (numbers[0] !== this.#addresses.length) this.#addresses = this.#find();
    return this.#hasCounted();
  }

  // law python/ReleaseMemory.mayHaveChanged: python/host_exports
  /** As {@linkcode hasChanged}, without the lock: also true if finding out needs the lock. */
  mayHaveChanged(): boolean {
    const numbers = this.#numbers;
    if (numbers[2] !== 0) return true;
    return numbers[1] !== 0 && (numbers[0] !== this.#addresses.length || this.#hasCounted());
  }

  /** Whether a known counter is nonzero. */
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
