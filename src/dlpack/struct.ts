/**
 * DLPack's structs in memory: reading foreign ones, and writing our own.
 *
 * @module
 */
import {
  DLDataType,
  DLDevice,
  DLManagedTensor,
  DLManagedTensorVersioned,
  DLPACK_MAJOR_VERSION,
  DLPACK_MINOR_VERSION,
  DLPackVersion,
  DLTensor,
} from "../../bindings/dlpack.ts";
import {
  layoutOf,
  littleEndian,
  mostForeignBytes,
  readForeign,
  SlabPool,
  type Slot,
  wantsLeakReports,
} from "../ffi/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import { MAX_NDIM } from "../layout/mod.ts";
import { ExchangeError } from "../order/mod.ts";

const versioned = layoutOf(DLManagedTensorVersioned);
const legacy = layoutOf(DLManagedTensor);
const { size: versionBytes, offsets: versionAt } = layoutOf(DLPackVersion);
const at = layoutOf(DLTensor).offsets;
const deviceAt = layoutOf(DLDevice).offsets;
const dtypeAt = layoutOf(DLDataType).offsets;

/** The fields of a struct, as they are. */
export interface TensorFields {
  readonly flags: number;
  readonly deleter: bigint;
  readonly data: bigint;
  readonly deviceType: number;
  readonly deviceId: number;
  readonly ndim: number;
  readonly code: number;
  readonly bits: number;
  readonly lanes: number;
  /** 0n where there are no axes. */
  readonly shape: bigint;
  /** Whether there are strides, or no axes: a producer may leave out row-major strides. */
  readonly hasStrides: boolean;
  /** 0n where there are none, and where `stridesBehind` says it. */
  readonly strides: bigint;
  /** Bytes from the shape to strides that are to be read with it; 0 where there are none such. */
  readonly stridesBehind: number;
  readonly byteOffset: bigint;
}

// law dlpack/readTensor: dlpack/export, dlpack/import, dlpack/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
/**
 * Reads a struct.
 *
 * @throws {ExchangeError} for one of another major version, of which nothing else is read; for a number of dimensions
 *   and for pointers to them that cannot be
 */
export function readTensor(ptr: bigint, isVersioned: boolean): TensorFields {
  if (!isVersioned) {
    return readFields(readForeign(ptr, legacy.size), legacy.offsets.dl_tensor, legacy.offsets.deleter, 0);
  }
  // Of another version, nothing is known to lie behind the flags; but a page is there as a whole.
  if ((ptr & offsetInPage) > lastWhole) checkVersion(readForeign(ptr, versionBytes));
  const bytes = readForeign(ptr, versioned.size);
  checkVersion(bytes);
  const flags = bytes.getUint32(versioned.offsets.flags, littleEndian);
  return readFields(bytes, versioned.offsets.dl_tensor, versioned.offsets.deleter, flags);
}

/**
 * Where in a page an address is. Pages are at least so large: if an address can be read, so can all that is in its
 * page.
 */
const offsetInPage = 4095n;
/** The last place in a page at which a struct is in it as a whole. */
const lastWhole = 4096n - BigInt(versioned.size);

// law dlpack/checkVersion: dlpack/export, dlpack/import, dlpack/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
function checkVersion(bytes: DataView): void {
  const major = bytes.getUint32(versionAt.major, littleEndian);
  if (major === DLPACK_MAJOR_VERSION) return;
  const minor = bytes.getUint32(versionAt.minor, littleEndian);
  throw new ExchangeError(`Cannot import a tensor of DLPack ${major}.${minor}: expected ${DLPACK_MAJOR_VERSION}.x`);
}

function readFields(bytes: DataView, from: number, deleterAt: number, flags: number): TensorFields {
  const dtype = from + at.dtype;
  const offset = from + at.byte_offset;
  const ndim = bytes.getInt32(from + at.ndim, littleEndian);
  const hasStrides = ndim === 0 || !isNull(bytes, from + at.strides);
  checkPointers(bytes, from, ndim, hasStrides);
  const behind = hasStrides ? stridesBehind(bytes, from, ndim) : 0;
  return {
    flags,
    deleter: bytes.getBigUint64(deleterAt, littleEndian),
    data: bytes.getBigUint64(from + at.data, littleEndian),
    deviceType: bytes.getInt32(from + at.device + deviceAt.device_type, littleEndian),
    deviceId: bytes.getInt32(from + at.device + deviceAt.device_id, littleEndian),
    ndim,
    code: bytes.getUint8(dtype + dtypeAt.code),
    bits: bytes.getUint8(dtype + dtypeAt.bits),
    lanes: bytes.getUint16(dtype + dtypeAt.lanes, littleEndian),
    shape: ndim === 0 ? 0n : bytes.getBigUint64(from + at.shape, littleEndian),
    hasStrides,
    strides: ndim === 0 || !hasStrides || behind > 0 ? 0n : bytes.getBigUint64(from + at.strides, littleEndian),
    stridesBehind: behind,
    byteOffset: isNull(bytes, offset) ? 0n : bytes.getBigUint64(offset, littleEndian),
  };
}

// law dlpack/stridesBehind: dlpack/export, dlpack/import, dlpack/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
/**
 * How many bytes behind the shape the strides begin, if both can be read at once; otherwise 0. What lies between two
 * places less than a page apart is in the page of one of them.
 */
function stridesBehind(bytes: DataView, from: number, ndim: number): number {
  const shapeAt = from + at.shape;
  const stridesAt = from + at.strides;
  if (bytes.getInt32(shapeAt + 4, littleEndian) !== bytes.getInt32(stridesAt + 4, littleEndian)) return 0;
  const behind = bytes.getInt32(stridesAt, littleEndian) - bytes.getInt32(shapeAt, littleEndian) | 0;
  return behind > 0 && behind + 8 * ndim <= mostForeignBytes ? behind : 0;
}

/** Whether eight bytes are 0. Making a bigint for that would be slower. */
function isNull(bytes: DataView, at: number): boolean {
  return bytes.getUint32(at, littleEndian) === 0 && bytes.getUint32(at + 4, littleEndian) === 0;
}

// law dlpack/checkPointers: dlpack/export, dlpack/import, dlpack/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
/** Fails unless there can be as many 64-bit integers as a struct says where it says. */
function checkPointers(bytes: DataView, from: number, ndim: number, hasStrides: boolean): void {
  if (ndim < 0 || ndim > MAX_NDIM) {
    throw new ExchangeError(`Cannot import a DLPack tensor of ${ndim} dimensions: expected 0 to ${MAX_NDIM}`);
  }
  if (ndim === 0) return;
  checkPointer(bytes, from + at.shape, "shape pointer");
  if (hasStrides) checkPointer(bytes, from + at.strides, "strides pointer");
}

// law dlpack/checkPointer: dlpack/export, dlpack/import, dlpack/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
function checkPointer(bytes: DataView, pointerAt: number, name: string): void {
  if (isNull(bytes, pointerAt)) throw new ExchangeError(`Cannot import a DLPack tensor: its ${name} is NULL`);
  if ((bytes.getUint32(pointerAt, littleEndian) & 7) === 0) return;
  throw misaligned(name, bytes.getBigUint64(pointerAt, littleEndian));
}

/** What is said of a pointer to numbers, or to a struct, that is no multiple of 8. */
export function misaligned(name: string, address: bigint): ExchangeError {
  return new ExchangeError(`Cannot import a DLPack tensor: its ${name} is ${address}, expected a multiple of 8`);
}

/** Reads extents into an array, and strides, where there are any, into another one. Beyond 2^53 they are rounded. */
export function readNumbers(fields: TensorFields, extents: number[], steps: number[]): void {
  const { ndim, shape, strides, stridesBehind } = fields;
  if (ndim === 0) return;
  const bytes = readForeign(shape, stridesBehind + 8 * ndim);
  readInt64s(bytes, 0, ndim, extents);
  if (stridesBehind > 0) readInt64s(bytes, stridesBehind, ndim, steps);
  else if (strides !== 0n) readInt64s(readForeign(strides, 8 * ndim), 0, ndim, steps);
}

/**
 * Small ones are taken as they are: what was computed may be kept as a floating-point number, in another kind of array.
 */
function readInt64s(bytes: DataView, from: number, count: number, values: number[]): void {
  for (let i = 0; i < count; i++) {
    const low = bytes.getInt32(from + i * 8, littleEndian);
    const high = bytes.getInt32(from + i * 8 + 4, littleEndian);
    values[i] = high === low >> 31 ? low : high * 2 ** 32 + (low >>> 0);
  }
}

/** What a struct is to say. */
export interface TensorContent {
  readonly isVersioned: boolean;
  /** Bits of DLPACK_FLAG_BITMASK. */
  readonly flags: number;
  readonly data: bigint;
  readonly device: readonly [type: number, id: number];
  readonly dtype: { readonly code: number; readonly bits: number; readonly lanes: number };
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

/** A struct of ours, in one block of memory with a counter of releases, the shape and the strides. */
class TensorBlock {
  readonly #bytes: DataView<ArrayBuffer>;
  readonly #isVersioned: boolean;
  /** Where in the block the counter is; it is followed by the extents, and these by as many strides as there may be. */
  readonly #counter: number;
  readonly #most: number;
  readonly #counterAddress: bigint;
  readonly #shapeAddress: bigint;
  readonly #stridesAddress: bigint;

  constructor(isVersioned: boolean, most: number, address: bigint, bytes: DataView<ArrayBuffer>) {
    this.#bytes = bytes;
    this.#isVersioned = isVersioned;
    this.#counter = headOf(isVersioned).size;
    this.#most = most;
    this.#counterAddress = address + BigInt(this.#counter);
    this.#shapeAddress = this.#counterAddress + BigInt(counterBytes);
    this.#stridesAddress = this.#shapeAddress + BigInt(8 * most);
  }

  /** Whether the deleter has been called. */
  get isReleased(): boolean {
    return this.#bytes.getInt32(this.#counter, littleEndian) > 0;
  }

  /** Reports, once, that the deleter was called more than once: it did no harm this time, but the next time it may. */
  checkReleases(): void {
    if (this.#bytes.getInt32(this.#counter, littleEndian) <= 1) return;
    this.#bytes.setInt32(this.#counter, 1, littleEndian);
    if (wantsLeakReports()) {
      console.error("Causeway: a consumer has called the deleter of a DLPack tensor more than once");
    }
  }

  // law dlpack/TensorBlock.write: dlpack/export, dlpack/import, dlpack/layout_cache, order/reclaim, dlpack/fuzz,
  //   memory/collection
  /** Writes all fields: the consumer before may have written to them. */
  write({ flags, data, device, dtype, shape, strides }: TensorContent): void {
    this.checkReleases(); // by the consumer before
    const bytes = this.#bytes;
    const { offsets } = headOf(this.#isVersioned);
    const { address } = releaseThunks();
    if (this.#isVersioned) {
      bytes.setUint32(versioned.offsets.version + versionAt.major, DLPACK_MAJOR_VERSION, littleEndian);
      bytes.setUint32(versioned.offsets.version + versionAt.minor, DLPACK_MINOR_VERSION, littleEndian);
      setInt64(bytes, versioned.offsets.flags, flags);
    }
    const deleter = this.#isVersioned ? address.DLManagedTensorVersioned : address.DLManagedTensor;
    bytes.setBigUint64(offsets.manager_ctx, this.#counterAddress, littleEndian);
    bytes.setBigUint64(offsets.deleter, deleter, littleEndian);
    setInt64(bytes, this.#counter, 0);
    const from = offsets.dl_tensor;
    bytes.setBigUint64(from + at.data, data, littleEndian);
    bytes.setInt32(from + at.device + deviceAt.device_type, device[0], littleEndian);
    bytes.setInt32(from + at.device + deviceAt.device_id, device[1], littleEndian);
    bytes.setInt32(from + at.ndim, shape.length, littleEndian);
    bytes.setUint8(from + at.dtype + dtypeAt.code, dtype.code);
    bytes.setUint8(from + at.dtype + dtypeAt.bits, dtype.bits);
    bytes.setUint16(from + at.dtype + dtypeAt.lanes, dtype.lanes, littleEndian);
    // Always explicit strides: NULL has been illegal since DLPack 1.2. A scalar has neither shape nor strides.
    bytes.setBigUint64(from + at.shape, shape.length === 0 ? 0n : this.#shapeAddress, littleEndian);
    bytes.setBigUint64(from + at.strides, shape.length === 0 ? 0n : this.#stridesAddress, littleEndian);
    setInt64(bytes, from + at.byte_offset, 0);
    const numbers = this.#counter + counterBytes;
    for (let axis = 0; axis < shape.length; axis++) {
      setInt64(bytes, numbers + 8 * axis, shape[axis] ?? 0);
      setInt64(bytes, numbers + 8 * (this.#most + axis), strides[axis] ?? 0);
    }
  }
}

const counterBytes = 8;

function headOf(isVersioned: boolean): typeof versioned | typeof legacy {
  return isVersioned ? versioned : legacy;
}

/** Writes a safe integer as an `int64_t`. */
function setInt64(bytes: DataView, byteOffset: number, value: number): void {
  bytes.setUint32(byteOffset, value >>> 0, littleEndian); // modulo 2^32, also of a negative number
  bytes.setInt32(byteOffset + 4, Math.floor(value / 2 ** 32), littleEndian);
}

/** Most tensors have few axes, and their structs are small. */
const fewAxes = 6;

function poolOf(isVersioned: boolean, most: number): SlabPool<TensorBlock> {
  const bytes = headOf(isVersioned).size + counterBytes + 2 * 8 * most;
  return new SlabPool(bytes, (address, view) => new TensorBlock(isVersioned, most, address, view));
}

const pools = {
  versioned: { small: poolOf(true, fewAxes), large: poolOf(true, MAX_NDIM) },
  legacy: { small: poolOf(false, fewAxes), large: poolOf(false, MAX_NDIM) },
};

/** A struct that a consumer has, from when it is written until it is freed. */
export class ExportedStruct {
  readonly #pool: SlabPool<TensorBlock>;
  readonly #slot: Slot<TensorBlock>;

  // law dlpack/ExportedStruct.constructor: dlpack/export, dlpack/import, dlpack/layout_cache, order/reclaim,
  //   dlpack/fuzz, memory/collection
  /** Writes the struct. Its deleter counts the release, on whatever thread. */
  constructor(content: TensorContent) {
    const { small, large } = content.isVersioned ? pools.versioned : pools.legacy;
    this.#pool = content.shape.length <= fewAxes ? small : large;
    this.#slot = this.#pool.allocate();
    this.#slot.content.write(content);
  }

  /** `DLManagedTensorVersioned *` or `DLManagedTensor *`. */
  get address(): bigint {
    return this.#slot.address;
  }

  /** Whether the consumer has called the deleter. */
  get isReleased(): boolean {
    return this.#slot.content.isReleased;
  }

  // law dlpack/ExportedStruct.free: dlpack/export, dlpack/import, dlpack/layout_cache, order/reclaim, dlpack/fuzz,
  //   memory/collection
  /** Frees the struct's memory, once, after its release. */
  free(): void {
    this.#slot.content.checkReleases();
    this.#pool.free(this.#slot);
  }
}
