/**
 * DLPack structs in memory: reads foreign ones, and writes our own.
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
import { layoutOf, maxForeignBytes, readForeign, SlabPool, type Slot, wantsLeakReports } from "../ffi/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import { type DLPackDType, MAX_NDIM } from "../layout/mod.ts";
import { ExchangeError } from "../order/mod.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

const versioned = layoutOf(DLManagedTensorVersioned);
const legacy = layoutOf(DLManagedTensor);
const { size: versionBytes, offsets: versionAt } = layoutOf(DLPackVersion);
const at = layoutOf(DLTensor).offsets;
const deviceAt = layoutOf(DLDevice).offsets;
const dtypeAt = layoutOf(DLDataType).offsets;

/** The raw fields of a struct. */
export interface TensorFields {
  readonly deleter: bigint;
  readonly flags: number;
  readonly data: bigint;
  readonly deviceType: number;
  readonly deviceId: number;
  readonly ndim: number;
  readonly code: number;
  readonly bits: number;
  readonly lanes: number;
  /** 0n if there are no axes. */
  readonly shape: bigint;
  /** Whether there are strides, or no axes: a producer may omit row-major strides. */
  readonly hasStrides: boolean;
  /** 0n if there are none, or if `stridesAfterShape` locates them. */
  readonly strides: bigint;
  /** Bytes from the shape to the strides if one read covers both; otherwise 0. */
  readonly stridesAfterShape: number;
  readonly byteOffset: bigint;
}

// law dlpack/readTensor: dlpack/export, dlpack/import, layout/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
/**
 * Reads a struct.
 *
 * @param low the lower half of the address
 * @throws {ExchangeError} for another major version, in which case nothing else is read, and for an impossible number
 *   of dimensions or impossible pointers to them
 */
export function readTensor(ptr: bigint, isVersioned: boolean, low: number): TensorFields {
  if (!isVersioned) {
    return readFields(readForeign(ptr, legacy.size), legacy.offsets.dl_tensor, legacy.offsets.deleter, 0);
  }
  // For another version, nothing is known about what follows the flags; but pages are mapped as a whole.
  if ((low & offsetInPage) > lastWhole) checkVersion(readForeign(ptr, versionBytes));
  const bytes = readForeign(ptr, versioned.size);
  checkVersion(bytes);
  const flags = bytes.getUint32(versioned.offsets.flags, littleEndian);
  return readFields(bytes, versioned.offsets.dl_tensor, versioned.offsets.deleter, flags);
}

/**
 * Mask of an address's offset in its page. Pages are at least this large: if an address is readable, so is its whole
 * page.
 */
const offsetInPage = 4095;
/** The last offset in a page at which a struct fits. */
const lastWhole = 4096 - versioned.size;

// law dlpack/checkVersion: dlpack/export, dlpack/import, layout/layout_cache, order/reclaim, dlpack/fuzz,
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
  const behind = hasStrides ? stridesAfterShape(bytes, from, ndim) : 0;
  return {
    deleter: bytes.getBigUint64(deleterAt, littleEndian),
    flags,
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
    stridesAfterShape: behind,
    byteOffset: isNull(bytes, offset) ? 0n : bytes.getBigUint64(offset, littleEndian),
  };
}

// law dlpack/stridesAfterShape: dlpack/export, dlpack/import, layout/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
/**
 * How many bytes after the shape the strides begin, if one read can cover both; otherwise 0. Everything between two
 * addresses less than a page apart is in the page of one of them.
 */
function stridesAfterShape(bytes: DataView, from: number, ndim: number): number {
  const shapeAt = from + at.shape;
  const stridesAt = from + at.strides;
  if (bytes.getInt32(shapeAt + 4, littleEndian) !== bytes.getInt32(stridesAt + 4, littleEndian)) return 0;
  const behind = bytes.getInt32(stridesAt, littleEndian) - bytes.getInt32(shapeAt, littleEndian) | 0;
  return behind > 0 && behind + 8 * ndim <= maxForeignBytes ? behind : 0;
}

/** Whether eight bytes are 0. Reading them as a bigint would be slower. */
function isNull(bytes: DataView, offset: number): boolean {
  return bytes.getUint32(offset, littleEndian) === 0 && bytes.getUint32(offset + 4, littleEndian) === 0;
}

// law dlpack/checkPointers: dlpack/export, dlpack/import, layout/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
/** Throws unless a struct's pointers can point to as many 64-bit integers as the struct claims. */
function checkPointers(bytes: DataView, from: number, ndim: number, hasStrides: boolean): void {
  if (ndim < 0 || ndim > MAX_NDIM) {
    throw new ExchangeError(`Cannot import a DLPack tensor of ${ndim} dimensions: expected 0 to ${MAX_NDIM}`);
  }
  if (ndim === 0) return;
  checkPointer(bytes, from + at.shape, "shape pointer");
  if (hasStrides) checkPointer(bytes, from + at.strides, "strides pointer");
}

// law dlpack/checkPointer: dlpack/export, dlpack/import, layout/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
function checkPointer(bytes: DataView, pointerAt: number, name: string): void {
  if (isNull(bytes, pointerAt)) throw new ExchangeError(`Cannot import a DLPack tensor: its ${name} is NULL`);
  if ((bytes.getUint32(pointerAt, littleEndian) & 7) === 0) return;
  throw misaligned(name, bytes.getBigUint64(pointerAt, littleEndian));
}

/** The error for a pointer to numbers, or to a struct, that is not a multiple of 8. */
export function misaligned(name: string, address: bigint): ExchangeError {
  return new ExchangeError(`Cannot import a DLPack tensor: its ${name} is ${address}, expected a multiple of 8`);
}

/** One of our structs, in one block of memory with a release counter, the shape and the strides. */
class TensorBlock {
  /**
   * The block as typed arrays, one for each width of its fields. Values known in advance are stored as 32-bit words:
   * storing a bigint takes Bun ten times as long.
   */
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;
  readonly #longs: BigUint64Array;
  readonly #head: HeadIndices;
  /** The word index of the counter; the extents follow it, then the strides, with room for `maxAxes` of each. */
  readonly #counter: number;
  readonly #maxAxes: number;
  readonly #pointers: Readonly<Record<"counter" | "deleter" | "shape" | "strides", Words>>;

  constructor(head: HeadIndices, maxAxes: number, address: bigint, block: DataView<ArrayBuffer>) {
    const { buffer, byteOffset, byteLength } = block;
    this.#words = new Int32Array(buffer, byteOffset, byteLength / 4);
    this.#bytes = new Uint8Array(buffer, byteOffset, byteLength);
    this.#longs = new BigUint64Array(buffer, byteOffset, byteLength / 8);
    this.#head = head;
    this.#counter = head.size / 4;
    this.#maxAxes = maxAxes;
    const counter = address + BigInt(head.size);
    const shape = counter + BigInt(counterBytes);
    this.#pointers = {
      counter: wordsOf(counter),
      deleter: wordsOf(releaseThunks().address[head.version < 0 ? "DLManagedTensor" : "DLManagedTensorVersioned"]),
      shape: wordsOf(shape),
      strides: wordsOf(shape + BigInt(8 * maxAxes)),
    };
  }

  /** Whether the deleter has been called. */
  get isReleased(): boolean {
    return (this.#words[this.#counter] ?? 0) > 0;
  }

  /** Counts a release as the deleter does. */
  release(): void {
    this.#words[this.#counter] = (this.#words[this.#counter] ?? 0) + 1;
  }

  /** Reports, once, that the deleter was called more than once: harmless this time, but it may not be the next time. */
  checkReleases(): void {
    if ((this.#words[this.#counter] ?? 0) <= 1) return;
    this.#words[this.#counter] = 1;
    if (wantsLeakReports()) {
      console.error("Causeway: a consumer has called the deleter of a DLPack tensor more than once");
    }
  }

  // law dlpack/TensorBlock.write: dlpack/export, dlpack/import, layout/layout_cache, order/reclaim, dlpack/fuzz,
  //   memory/collection
  /**
   * Writes all fields: the previous consumer may have written to them. Takes separate parameters: an options object
   * would be one more allocation for each export.
   *
   * @param flags bits of DLPACK_FLAG_BITMASK
   */
  write(flags: number, data: bigint, deviceType: number, deviceId: number, dtype: DLPackDType, layout: Axes): void {
    this.checkReleases(); // by the previous consumer
    const { shape, strides } = layout;
    const ndim = shape.length;
    const head = this.#head;
    const words = this.#words;
    const bytes = this.#bytes;
    const pointers = this.#pointers;
    if (head.version >= 0) {
      words[head.version] = DLPACK_MAJOR_VERSION;
      words[head.version + 1] = DLPACK_MINOR_VERSION;
      writeInt64(words, head.flags, flags);
    }
    writeWords(words, head.context, pointers.counter);
    writeWords(words, head.deleter, pointers.deleter);
    writeInt64(words, this.#counter, 0);
    this.#longs[head.data] = data;
    words[head.device] = deviceType;
    words[head.device + 1] = deviceId;
    words[head.ndim] = ndim;
    bytes[head.dtype] = dtype.code;
    bytes[head.dtype + 1] = dtype.bits;
    bytes[head.dtype + 2] = dtype.lanes;
    bytes[head.dtype + 3] = dtype.lanes >> 8;
    // Strides are always explicit: NULL has been illegal since DLPack 1.2. A scalar has neither shape nor strides.
    writeWords(words, head.shape, ndim === 0 ? nullPointer : pointers.shape);
    writeWords(words, head.strides, ndim === 0 ? nullPointer : pointers.strides);
    writeInt64(words, head.byteOffset, 0);
    const numbers = this.#counter + counterBytes / 4;
    for (let axis = 0; axis < ndim; axis++) {
      writeInt64(words, numbers + 2 * axis, shape[axis] ?? 0);
      writeInt64(words, numbers + 2 * (this.#maxAxes + axis), strides[axis] ?? 0);
    }
  }
}

/** Eight bytes as two words. */
interface Words {
  readonly low: number;
  readonly high: number;
}

const nullPointer: Words = { low: 0, high: 0 };

function wordsOf(address: bigint): Words {
  return { low: Number(BigInt.asIntN(32, address)), high: Number(BigInt.asIntN(32, address >> 32n)) };
}

function writeWords(words: Int32Array, index: number, { low, high }: Words): void {
  words[index] = low;
  words[index + 1] = high;
}

/** The part of a layout that a struct expresses. */
interface Axes {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

const counterBytes = 8;

/** Where the fields are: indices of 32-bit words; `data` is an index of 64-bit words, `dtype` an offset in bytes. */
interface HeadIndices {
  readonly size: number;
  /** -1 in the old struct. */
  readonly version: number;
  readonly flags: number;
  readonly context: number;
  readonly deleter: number;
  readonly data: number;
  readonly device: number;
  readonly ndim: number;
  readonly dtype: number;
  readonly shape: number;
  readonly strides: number;
  readonly byteOffset: number;
}

function headIndices(head: typeof versioned | typeof legacy): HeadIndices {
  const { size, offsets } = head;
  const from = offsets.dl_tensor;
  return {
    size,
    version: "version" in offsets ? offsets.version / 4 : -1,
    flags: "flags" in offsets ? offsets.flags / 4 : -1,
    context: offsets.manager_ctx / 4,
    deleter: offsets.deleter / 4,
    data: (from + at.data) / 8,
    device: (from + at.device) / 4,
    ndim: (from + at.ndim) / 4,
    dtype: from + at.dtype,
    shape: (from + at.shape) / 4,
    strides: (from + at.strides) / 4,
    byteOffset: (from + at.byte_offset) / 4,
  };
}

/** Writes a safe integer as an `int64_t`, in the byte order of both architectures. */
function writeInt64(words: Int32Array, index: number, value: number): void {
  const low = value | 0; // modulo 2^32, for negative numbers, too
  words[index] = low;
  words[index + 1] = low === value ? low >> 31 : Math.floor(value / 2 ** 32);
}

/** Most tensors have few axes, so their structs are small. */
const fewAxes = 6;

function poolOf(head: HeadIndices, maxAxes: number): SlabPool<TensorBlock> {
  const bytes = head.size + counterBytes + 2 * 8 * maxAxes;
  return new SlabPool(bytes, (address, view) => new TensorBlock(head, maxAxes, address, view));
}

const heads = { versioned: headIndices(versioned), legacy: headIndices(legacy) };
const pools = {
  versioned: { small: poolOf(heads.versioned, fewAxes), large: poolOf(heads.versioned, MAX_NDIM) },
  legacy: { small: poolOf(heads.legacy, fewAxes), large: poolOf(heads.legacy, MAX_NDIM) },
};

/** The pool in which our structs are written. */
export type TensorPool = SlabPool<TensorBlock>;
/** The memory of one of our structs. */
export type TensorSlot = Slot<TensorBlock>;

// law dlpack/tensorPool: dlpack/export, dlpack/import, layout/layout_cache, order/reclaim, dlpack/fuzz,
//   memory/collection
/** The pool for structs of a version and number of axes. Their deleters count the release, on any thread. */
export function tensorPool(isVersioned: boolean, ndim: number): TensorPool {
  const { small, large } = isVersioned ? pools.versioned : pools.legacy;
  return ndim <= fewAxes ? small : large;
}
