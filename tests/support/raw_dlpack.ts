/**
 * DLPack's structs by hand: every field at its offset in dlpack.h 1.3 as gcc lays it out on x86-64 and arm64, without
 * using the code under test.
 *
 * @module
 */
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";

/** Offset of the `dl_tensor` in the struct: DLManagedTensorVersioned (80 bytes) and DLManagedTensor (64 bytes). */
const tensorOffset = { versioned: 32, legacy: 0 } as const;

/** Size of the struct in bytes. */
export const structBytes = { versioned: 80, legacy: 64 } as const;

/** Which of the two structs. */
export type Kind = keyof typeof tensorOffset;

/** All fields of a struct; the legacy one has no version and no flags. */
export interface RawTensor {
  readonly major: number;
  readonly minor: number;
  readonly managerContext: bigint;
  readonly deleter: bigint;
  readonly flags: bigint;
  readonly data: bigint;
  readonly deviceType: number;
  readonly deviceId: number;
  readonly ndim: number;
  readonly code: number;
  readonly bits: number;
  readonly lanes: number;
  readonly shape: bigint;
  readonly strides: bigint;
  readonly byteOffset: bigint;
}

/** Reads a struct. */
export function readRaw(ptr: bigint, kind: Kind): RawTensor {
  const view = new DataView(ffiPort().memory(ptr, structBytes[kind]));
  const at = tensorOffset[kind];
  return {
    major: kind === "versioned" ? view.getUint32(0, true) : 0,
    minor: kind === "versioned" ? view.getUint32(4, true) : 0,
    managerContext: view.getBigUint64(kind === "versioned" ? 8 : 48, true),
    deleter: view.getBigUint64(kind === "versioned" ? 16 : 56, true),
    flags: kind === "versioned" ? view.getBigUint64(24, true) : 0n,
    data: view.getBigUint64(at, true),
    deviceType: view.getInt32(at + 8, true),
    deviceId: view.getInt32(at + 12, true),
    ndim: view.getInt32(at + 16, true),
    code: view.getUint8(at + 20),
    bits: view.getUint8(at + 21),
    lanes: view.getUint16(at + 22, true),
    shape: view.getBigUint64(at + 24, true),
    strides: view.getBigUint64(at + 32, true),
    byteOffset: view.getBigUint64(at + 40, true),
  };
}

/** Writes a struct. */
export function writeRaw(ptr: bigint, kind: Kind, raw: RawTensor): void {
  const view = new DataView(ffiPort().memory(ptr, structBytes[kind]));
  const at = tensorOffset[kind];
  if (kind === "versioned") {
    view.setUint32(0, raw.major, true);
    view.setUint32(4, raw.minor, true);
    view.setBigUint64(24, raw.flags, true);
  }
  view.setBigUint64(kind === "versioned" ? 8 : 48, raw.managerContext, true);
  view.setBigUint64(kind === "versioned" ? 16 : 56, raw.deleter, true);
  view.setBigUint64(at, raw.data, true);
  view.setInt32(at + 8, raw.deviceType, true);
  view.setInt32(at + 12, raw.deviceId, true);
  view.setInt32(at + 16, raw.ndim, true);
  view.setUint8(at + 20, raw.code);
  view.setUint8(at + 21, raw.bits);
  view.setUint16(at + 22, raw.lanes, true);
  view.setBigUint64(at + 24, raw.shape, true);
  view.setBigUint64(at + 32, raw.strides, true);
  view.setBigUint64(at + 40, raw.byteOffset, true);
}

/** Replaces the deleter in a struct. */
export function patchDeleter(ptr: bigint, kind: Kind, deleter: bigint): void {
  writeRaw(ptr, kind, { ...readRaw(ptr, kind), deleter });
}

/** Reads `int64_t` values, none from NULL. */
export function readInt64s(ptr: bigint, count: number): number[] {
  if (ptr === 0n) return [];
  const view = new DataView(ffiPort().memory(ptr, count * 8));
  return Array.from({ length: count }, (_, i) => Number(view.getBigInt64(i * 8, true)));
}

/** A C array of `int64_t`; free it with libc's `free`. NULL for no values. */
export function writeInt64s(values: readonly (number | bigint)[]): bigint {
  if (values.length === 0) return 0n;
  const ptr = libc().loading.malloc(BigInt(values.length * 8));
  const view = new DataView(ffiPort().memory(ptr, values.length * 8));
  values.forEach((value, i) => view.setBigInt64(i * 8, BigInt(value), true));
  return ptr;
}

/** A deleter that counts its calls by the address of the struct. One JavaScript callback serves all structs. */
export class CountingDeleter {
  /** How often the deleter was called for each struct. */
  readonly calls: Map<bigint, number> = new Map();
  readonly #callback = ffiPort().callback({ args: ["ptr"], returns: "void" }, (ptr) => {
    this.calls.set(ptr, (this.calls.get(ptr) ?? 0) + 1);
    this.onCall?.(ptr);
  });
  /** Called after counting. */
  onCall: ((ptr: bigint) => void) | undefined;

  /** The address to write into a struct. */
  get address(): bigint {
    return this.#callback.address;
  }

  /** How often it was called for a struct. */
  callsFor(ptr: bigint): number {
    return this.calls.get(ptr) ?? 0;
  }

  /**
   * Clears the counts only. The callback stays for the life of the process: a failing test leaves imports behind, and
   * their finalisers would call freed code, so that a crash would mask the failure.
   */
  [Symbol.dispose](): void {
    this.calls.clear();
    this.onCall = undefined;
  }
}

/** A tensor of another library: the struct, its shape and its strides in C memory, freed by `free`. */
export interface ForeignTensor {
  readonly ptr: bigint;
  free(): void;
}

/** The fields of a foreign tensor, with defaults for those omitted. */
export interface ForeignTensorOptions extends Partial<Omit<RawTensor, "shape" | "strides" | "ndim">> {
  readonly shape: readonly (number | bigint)[];
  /** `null` for a NULL pointer. */
  readonly strides: readonly (number | bigint)[] | null;
}

/** Makes a tensor of another library; float32 in host memory by default. */
export function foreignTensor(kind: Kind, options: ForeignTensorOptions): ForeignTensor {
  const shape = writeInt64s(options.shape);
  const strides = options.strides === null ? 0n : writeInt64s(options.strides);
  const ptr = libc().loading.malloc(BigInt(structBytes[kind]));
  writeRaw(ptr, kind, {
    major: 1,
    minor: 3,
    managerContext: 0n,
    deleter: 0n,
    flags: 0n,
    data: 0n,
    deviceType: 1,
    deviceId: 0,
    code: 2,
    bits: 32,
    lanes: 1,
    byteOffset: 0n,
    ...options,
    ndim: options.shape.length,
    shape,
    strides,
  });
  const free = () => {
    for (const address of [shape, strides, ptr]) libc().loading.free(address);
  };
  return { ptr, free };
}
