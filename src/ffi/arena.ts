/**
 * Native memory for out-parameters, structs and strings that C reads or writes: allocated in chunks, seen through one
 * ArrayBuffer per chunk, freed together.
 *
 * @module
 */
import type { CScalar, StructDescription } from "../../bindings/abi.ts";
import { FfiError } from "./errors.ts";
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";
import { roundUp, struct, type StructView } from "./struct.ts";
import { cString } from "./c_string.ts";

/** One value in native memory: pass `$address` to C, read `value` afterwards. */
export type Out<S extends CScalar> = StructView<{ readonly value: S }>;

interface Chunk {
  readonly address: bigint;
  readonly buffer: ArrayBuffer;
  used: number;
}

const chunkBytes = 4096;

/** One description per scalar, so that every slot of a kind shares one class. */
const slots = new Map<CScalar, StructDescription>();

/**
 * A growing region of zeroed native memory. C may keep pointers into it until it is closed; views into it must not be
 * used afterwards.
 *
 * @example
 * ```ts ignore
 * using arena = new NativeArena();
 * const count = arena.out("i32");
 * check(driver.device.cuDeviceGetCount(count.$address));
 * console.log(count.value);
 * ```
 */
export class NativeArena {
  #chunks: Chunk[] = [];
  #closed = false;

  /** Bytes taken from the C allocator so far. */
  get allocated(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunk.buffer.byteLength, 0);
  }

  /** A slot for one value. */
  out<S extends CScalar>(type: S): Out<S> {
    const slot = slots.getOrInsertComputed(type, (value) => ({ value }));
    return this.struct(slot) as unknown as Out<S>; // the slot of its type describes exactly this
  }

  /** A zeroed struct. */
  struct<const D extends StructDescription>(description: D): StructView<D> {
    const { size, alignment, over } = struct(description);
    const [chunk, offset] = this.#take(size, alignment);
    return over(chunk.buffer, chunk.address, offset);
  }

  /**
   * Zeroed bytes.
   *
   * @param length bytes
   * @param alignment of `address`, a power of two
   * @throws {RangeError} if `length` is not a valid size, or `alignment` not a power of two
   */
  bytes(length: number, alignment = 8): { readonly address: bigint; readonly bytes: Uint8Array<ArrayBuffer> } {
    const [chunk, offset] = this.#take(length, alignment);
    return { address: chunk.address + BigInt(offset), bytes: new Uint8Array(chunk.buffer, offset, length) };
  }

  /** A NUL-terminated copy of a string; C may keep the address until the arena is closed. */
  cString(text: string): bigint {
    const encoded = cString(text);
    const { address, bytes } = this.bytes(encoded.length, 1);
    bytes.set(encoded);
    return address;
  }

  /** Frees everything. Closing twice is harmless. */
  close(): void {
    this.#closed = true;
    for (const { address } of this.#chunks.splice(0)) libc().loading.free(address);
  }

  /** Frees everything. */
  [Symbol.dispose](): void {
    this.close();
  }

  #take(size: number, alignment: number): [Chunk, number] {
    if (this.#closed) throw new FfiError("Cannot allocate from a closed arena");
    if (!Number.isSafeInteger(size) || size < 0) {
      throw new RangeError(`Cannot allocate ${size} bytes: expected an integer of at least 0`);
    }
    if (!(alignment >= 1 && Number.isInteger(Math.log2(alignment)))) {
      throw new RangeError(`Cannot align to ${alignment} bytes: expected a power of two`);
    }
    const last = this.#chunks.at(-1);
    const start = last === undefined ? 0 : alignedOffset(last, alignment);
    const chunk = last !== undefined && start + size <= last.buffer.byteLength ? last : this.#grow(size, alignment);
    const offset = chunk === last ? start : alignedOffset(chunk, alignment);
    chunk.used = offset + size;
    return [chunk, offset];
  }

  // law ffi/NativeArena.grow: ffi/arena
  #grow(size: number, alignment: number): Chunk {
    const length = Math.max(chunkBytes, size + alignment);
    const address = allocate(length);
    const chunk = { address, buffer: ffiPort().memory(address, length), used: 0 };
    this.#chunks.push(chunk);
    return chunk;
  }
}

// law ffi/alignedOffset: ffi/arena
/** The first free offset of a chunk at which the address is a multiple of `alignment`. Chunks are aligned to 16. */
function alignedOffset({ address, used }: Chunk, alignment: number): number {
  const misaligned = alignment <= 16 ? 0 : Number(address % BigInt(alignment));
  return roundUp(misaligned + used, alignment) - misaligned;
}

/**
 * Zeroed memory from the C allocator, aligned for any scalar that fits into it. Free it with libc's `free`.
 *
 * @param length bytes
 * @throws {FfiError} if the allocation fails
 */
export function allocate(length: number): bigint {
  const address = libc().loading.calloc(1n, BigInt(length));
  if (address === 0n) throw new FfiError(`Cannot allocate ${length} bytes of host memory: calloc returned NULL`);
  return address;
}
