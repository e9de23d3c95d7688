/**
 * DLPack imports: a tensor of any library as an array.
 *
 * @module
 */
import {
  DLDeviceType,
  DLPACK_FLAG_BITMASK,
  DLPACK_MAJOR_VERSION,
  DLPACK_MINOR_VERSION,
} from "../../bindings/dlpack.ts";
import { checkPlace, type CudaDevice, type CudaStream } from "../device/mod.ts";
import { isAddress, isFarFromEnds, lowHalf, readForeign } from "../ffi/mod.ts";
import {
  bytesBefore,
  bytesFrom,
  cachedLayout,
  cacheLayout,
  DType,
  isOfOtherCopy,
  MAX_NDIM,
  show,
  StridedLayout,
} from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import type { MakeArray } from "../copy/mod.ts";
import {
  type DlpackPointer,
  type DlpackSource,
  DlpackTensor,
  type ImportOptions,
  isDlpackSource,
  type ToDlpackOptions,
} from "./tensor.ts";
import { callRelease } from "../native/mod.ts";
import { misaligned, readTensor, type TensorFields } from "./struct.ts";
import { ExchangeError, hostWaitsBeforeReturn } from "../order/mod.ts";
import { foreignStart } from "./foreign_range.ts";

// law dlpack/fromDlpack: order/refusals
/**
 * Imports a tensor.
 *
 * @param source a tensor, an object with `__dlpack__()`, or the address of a struct
 * @param make makes the array from the parts found
 * @throws {ExchangeError} if it cannot be imported; the caller then still owns a tensor or struct that it passed in
 */
export function fromDlpack<T>(source: unknown, options: ImportOptions, make: MakeArray<T>): T {
  checkPlace(options, "Cannot import by DLPack");
  const { stream, device } = options;
  if (source instanceof DlpackTensor) return takeTensor(source, stream, device, make);
  if (typeof source === "object" && source !== null) {
    const { managedTensorVersioned, managedTensor }: Readonly<Partial<Record<keyof DlpackPointer, unknown>>> = source;
    if (typeof managedTensorVersioned === "bigint") {
      return take(managedTensorVersioned, true, null, stream, device, make);
    }
    if (typeof managedTensor === "bigint") return take(managedTensor, false, null, stream, device, make);
    if (isDlpackSource(source)) return ask(source, options, make);
  }
  throw new ExchangeError(
    "Cannot import by DLPack: expected an object with a method __dlpack__(), or the address of a tensor as a bigint: " +
      `{ managedTensorVersioned }${isOfOtherCopy(source) ? `, got ${show(source)}. Pass the view that it is of` : ""}`,
  );
}

function takeTensor<T>(
  tensor: DlpackTensor,
  stream: ImportOptions["stream"],
  device: CudaDevice | undefined,
  make: MakeArray<T>,
): T {
  return take(tensor.ptr, tensor.version !== null, tensor, stream, device, make);
}

// law dlpack/ask: dlpack/import, dlpack/fuzz, public/two_copies
function ask<T>(source: DlpackSource, options: ImportOptions, make: MakeArray<T>): T {
  const maxVersion = [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION] as const;
  const made: unknown = source.__dlpack__({ maxVersion, ...streamFor(source, options) });
  const tensor = made instanceof DlpackTensor ? made : wrap(made);
  try {
    return takeTensor(tensor, options.stream, options.device, make);
  } catch (error) {
    tensor.close(); // made for this import only
    throw error;
  }
}

/** Wraps a producer's own struct as a tensor, so that it is released if the import fails. */
function wrap(made: unknown): DlpackTensor {
  if (isOfOtherCopy(made)) { // of which the members are known
    const tensor = made as DlpackTensor;
    return new DlpackTensor(tensor.take(), tensor.version, { isReleased: () => false });
  }
  const { managedTensorVersioned, managedTensor }: Readonly<Partial<Record<keyof DlpackPointer, unknown>>> = Object(
    made,
  );
  const address = managedTensorVersioned ?? managedTensor;
  if (typeof address !== "bigint") {
    throw new ExchangeError(
      "Cannot import by DLPack: __dlpack__() returned neither a DlpackTensor nor the address of a tensor as a " +
        "bigint: { managedTensorVersioned }",
    );
  }
  checkAddress(address);
  const version: DlpackTensor["version"] = address === managedTensorVersioned ? [DLPACK_MAJOR_VERSION, 0] : null;
  return new DlpackTensor(address, version, { isReleased: () => false }); // only its producer knows
}

// law dlpack/streamFor: dlpack/import, dlpack/fuzz
/**
 * The stream to pass to a producer: none for host memory, for which the producer would have to refuse it. Streams have
 * another meaning on other device types, above all ROCm: such a producer is not called at all.
 */
function streamFor(source: DlpackSource, { stream }: ImportOptions): ToDlpackOptions {
  const type = typeOf(source);
  if (type !== undefined && !usable.has(type)) throw wrongType(type);
  const isOnHost = type === DLDeviceType.kDLCPU || type === DLDeviceType.kDLCUDAHost;
  return isOnHost || stream === undefined ? {} : { stream };
}

/** The producer's device type; undefined if it does not tell. */
function typeOf(source: DlpackSource): number | undefined {
  const { __dlpack_device__: tell } = source;
  if (tell === undefined) return undefined;
  const answer: unknown = typeof tell === "function" ? source.__dlpack_device__?.() : tell;
  const [type]: readonly unknown[] = isIterable(answer) ? [...answer] : [];
  if (typeof type === "number") return type;
  throw new ExchangeError(`Cannot import by DLPack: __dlpack_device__() returned ${show(answer)}, expected [type, id]`);
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

const usable: ReadonlySet<number> = new Set([
  DLDeviceType.kDLCPU,
  DLDeviceType.kDLCUDAHost,
  DLDeviceType.kDLCUDA,
  DLDeviceType.kDLCUDAManaged,
]);

function wrongType(type: number): ExchangeError {
  return new ExchangeError(`Cannot import memory of DLPack device type ${type}: expected CPU (1) or CUDA (2)`);
}

// law dlpack/take: dlpack/import, dlpack/fuzz
/**
 * @param tensor the owner of the struct, from which it is taken
 * @param used where the memory will be used, if no stream implies it
 */
function take<T>(
  address: bigint,
  isVersioned: boolean,
  tensor: DlpackTensor | null,
  stream: ImportOptions["stream"],
  used: CudaDevice | undefined,
  make: MakeArray<T>,
): T {
  const fields = readTensor(address, isVersioned, checkAddress(address));
  const { data: base, byteOffset, deviceType, flags } = fields;
  const dtype = readDtype(fields);
  const device = readDevice(fields, stream?.device ?? used);
  const layout = readLayout(fields, dtype.itemsize);
  const data = byteOffset === 0n || base === 0n ? base : base + byteOffset; // the usual case first
  const offset = bytesBefore(layout);
  const size = offset + bytesFrom(layout);
  const ptr = foreignStart(layout, data, offset, size, "a DLPack tensor");
  const kind = device === null ? "host" : deviceType === DLDeviceType.kDLCUDAManaged ? "managed" : "device";
  // producers assume the same
  const home = device === null ? null : stream === undefined ? device.defaultStream : stream;
  const owner = tensor ?? undefined;
  const lent: Lent = { tensor: address, deleter: fields.deleter };
  const buffer = MemoryBuffer.fromForeign(ptr, size, device, kind, home, owner, lent, returnToProducer);
  tensor?.take(); // only now: making a buffer for a closed device throws
  const isReadonly = (flags & readOnly) !== 0;
  if (isReadonly) buffer.protect();
  return make(buffer, offset, layout, dtype, isReadonly, buffer);
}

// law dlpack/checkAddress: dlpack/import, dlpack/fuzz, arrow/host_order
/** @returns the lower half of the address */
function checkAddress(address: bigint): number {
  if (!isFarFromEnds(address) && (address === 0n || !isAddress(address))) throw noAddress(address);
  const low = lowHalf(address);
  if ((low & 7) !== 0) throw misaligned("address", address);
  return low;
}

function noAddress(address: bigint): ExchangeError {
  const why = address === 0n ? "NULL" : `${address}, expected one of 64 bits`;
  return new ExchangeError(`Cannot import a DLPack tensor: its address is ${why}`);
}

/** What a producer has lent: a struct, and how it is released. */
interface Lent {
  readonly tensor: bigint;
  /** 0n if nothing is to be done. */
  readonly deleter: bigint;
}

// law dlpack/returnToProducer: dlpack/import, dlpack/fuzz
/** Runs at the end of an import. */
function returnToProducer(_: bigint, stream: CudaStream | null, { tensor, deleter }: Lent): void {
  if (stream !== null) hostWaitsBeforeReturn(stream);
  if (deleter !== 0n) callRelease(deleter, tensor);
}

const readOnly = Number(DLPACK_FLAG_BITMASK.READ_ONLY);
const isPadded = Number(DLPACK_FLAG_BITMASK.IS_SUBBYTE_TYPE_PADDED);

function readDtype({ code, bits, lanes, flags }: TensorFields): DType {
  const padded = (flags & isPadded) !== 0;
  try {
    return DType.fromParts(code, bits, lanes, padded);
  } catch (error) {
    throw refused(error);
  }
}

// law dlpack/readDevice: dlpack/import, dlpack/fuzz
/** @param device where the memory will be used */
function readDevice({ deviceType, deviceId }: TensorFields, device: CudaDevice | undefined): CudaDevice | null {
  switch (deviceType) {
    case DLDeviceType.kDLCPU:
    case DLDeviceType.kDLCUDAHost:
      return null;
    case DLDeviceType.kDLCUDA:
    case DLDeviceType.kDLCUDAManaged:
      if (device === undefined || device.ordinal !== deviceId) throw wrongDevice(deviceId, device);
      return device;
    default:
      throw wrongType(deviceType);
  }
}

function wrongDevice(deviceId: number, device: CudaDevice | undefined): ExchangeError {
  const why = device === undefined
    ? ": pass { stream } to say where it will be used, or { device }, also with a stream that is null"
    : ` for ${device}`;
  return new ExchangeError(`Cannot import memory of CUDA device ${deviceId}${why}`);
}

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/** Extents and strides of the tensor being read. The arrays are reused. */
const extents: number[] = Array.from({ length: MAX_NDIM }, () => 0);
const steps: number[] = Array.from({ length: MAX_NDIM }, () => 0);

/** @throws {ExchangeError} if a tensor's extents and strides make no valid layout */
function readLayout(fields: TensorFields, itemsize: number): StridedLayout {
  const { ndim, shape, strides, stridesAfterShape } = fields;
  if (ndim > 0) {
    const bytes = readForeign(shape, stridesAfterShape + 8 * ndim);
    readInt64s(bytes, 0, ndim, extents);
    if (stridesAfterShape > 0) readInt64s(bytes, stridesAfterShape, ndim, steps);
    else if (strides !== 0n) readInt64s(readForeign(strides, 8 * ndim), 0, ndim, steps);
  }
  const given = fields.hasStrides ? steps : null;
  return cachedLayout(extents, given, ndim, itemsize, 1) ?? newLayout(ndim, given, itemsize);
}

/**
 * Values beyond 2^53 are rounded. Small ones are stored without arithmetic: a computed value may be stored as a
 * floating-point number, which changes the kind of array.
 */
function readInt64s(bytes: DataView, from: number, count: number, values: number[]): void {
  for (let i = 0; i < count; i++) {
    const low = bytes.getInt32(from + i * 8, littleEndian);
    const high = bytes.getInt32(from + i * 8 + 4, littleEndian);
    values[i] = high === low >> 31 ? low : high * 2 ** 32 + (low >>> 0);
  }
}

/** A layout of the extents that were read. */
function newLayout(ndim: number, strides: readonly number[] | null, itemsize: number): StridedLayout {
  try {
    // The constructor rejects numbers that were rounded.
    const layout = new StridedLayout(
      extents.slice(0, ndim),
      strides === null ? null : strides.slice(0, ndim),
      itemsize,
    );
    cacheLayout(layout, strides !== null);
    return layout;
  } catch (error) {
    throw refused(error);
  }
}

/** A tensor that the layout room rejects cannot be imported either. */
function refused(cause: unknown): ExchangeError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new ExchangeError(`Cannot import a DLPack tensor: ${why}`, { cause });
}
