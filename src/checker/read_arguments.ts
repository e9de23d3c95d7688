/**
 * Reading what calls point to, cheaply: the C library copies it into memory that JavaScript already sees.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { NativeArena } from "../ffi/arena.ts";
import { type Libc, libc } from "../ffi/libc.ts";
import { littleEndian } from "../ffi/endian.ts";
import { struct, type StructView } from "../ffi/struct.ts";

/** Bytes of the largest thing that is looked at: the struct of a copy of a box. */
const largest = 512;

/** A window on native memory. Making an ArrayBuffer for every look would cost 0.2 to 0.5 us each. */
class ArgumentReader {
  readonly #memory: Libc["memory"];
  readonly #address: bigint;
  readonly #view: DataView<ArrayBuffer>;

  /** A window that sees nothing yet. */
  constructor() {
    const { address, bytes } = new NativeArena().bytes(largest, 16);
    this.#memory = libc().memory;
    this.#address = address;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, largest);
  }

  /** Where the window is: for calls that leave something there. */
  get address(): bigint {
    return this.#address;
  }

  /** What the window shows. */
  get view(): DataView<ArrayBuffer> {
    return this.#view;
  }

  /** Shows bytes at an address, which must exist. */
  at(address: bigint, bytes: number): DataView<ArrayBuffer> {
    this.#memory.memmove(this.#address, address, BigInt(bytes));
    return this.#view;
  }

  /** Shows a struct at an address, which must exist. The view is of use until something else is shown. */
  struct<const D extends StructDescription>(description: D, address: bigint): StructView<D> {
    const { size, over } = struct(description);
    const { buffer, byteOffset } = this.at(address, size);
    return over(buffer, this.#address - BigInt(byteOffset), byteOffset);
  }

  /** The pointer, handle or size at an address. */
  word(address: bigint): bigint {
    return this.at(address, 8).getBigUint64(0, littleEndian);
  }

  /** The pointer, handle or size in the window. */
  get value(): bigint {
    return this.#view.getBigUint64(0, littleEndian);
  }
}

export type { ArgumentReader };

let shared: ArgumentReader | undefined;

/** The window of this process. What it shows is used at once, so that one is enough; it lives as long as the process. */
export function argumentReader(): ArgumentReader {
  shared ??= new ArgumentReader();
  return shared;
}
