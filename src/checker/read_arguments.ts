/**
 * Cheap reads of what the arguments of calls point to: the C library copies it into memory that JavaScript has a view
 * of.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { type Libc, libc, littleEndian, NativeArena, struct, type StructView } from "../ffi/mod.ts";

/** Bytes of the largest struct that is read: that of a box copy. */
const largest = 512;

/** Reads native memory through one buffer. Making an ArrayBuffer for every read would cost 0.2 to 0.5 us each. */
class ArgumentReader {
  readonly #memory: Libc["memory"];
  readonly #address: bigint;
  readonly #view: DataView<ArrayBuffer>;

  /** A reader that has read nothing yet. */
  constructor() {
    const { address, bytes } = new NativeArena().bytes(largest, 16);
    this.#memory = libc().memory;
    this.#address = address;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, largest);
  }

  /** The address of the buffer: for calls that write a result there. */
  get address(): bigint {
    return this.#address;
  }

  /** The bytes of the buffer. */
  get view(): DataView<ArrayBuffer> {
    return this.#view;
  }

  /** Reads bytes at an address, which must be valid. */
  at(address: bigint, bytes: number): DataView<ArrayBuffer> {
    this.#memory.memmove(this.#address, address, BigInt(bytes));
    return this.#view;
  }

  /** Reads a struct at an address, which must be valid. The view is valid until the next read. */
  struct<const D extends StructDescription>(description: D, address: bigint): StructView<D> {
    const { size, over } = struct(description);
    const { buffer, byteOffset } = this.at(address, size);
    return over(buffer, this.#address - BigInt(byteOffset), byteOffset);
  }

  /** The pointer, handle or size at an address. */
  word(address: bigint): bigint {
    return this.at(address, 8).getBigUint64(0, littleEndian);
  }

  /** The pointer, handle or size in the buffer. */
  get value(): bigint {
    return this.#view.getBigUint64(0, littleEndian);
  }
}

export type { ArgumentReader };

let shared: ArgumentReader | undefined;

/** The reader of this process. Its results are used at once, so one is enough; it lives as long as the process. */
export function argumentReader(): ArgumentReader {
  shared ??= new ArgumentReader();
  return shared;
}
