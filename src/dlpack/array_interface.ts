/**
 * Arrays described by a plain object: NumPy's `__array_interface__`, and the CUDA Array Interface (version 3), which
 * also names the stream on which the memory is ordered.
 *
 * @module
 */
import { CU_STREAM_LEGACY } from "../../bindings/cuda_types.ts";
import { checkPlace, type CudaDevice, type CudaStream } from "../device/mod.ts";
import { isAddress, isFarFromEnds } from "../ffi/mod.ts";
import {
  bytesBefore,
  bytesFrom,
  cachedLayout,
  cacheLayout,
  DType,
  MAX_NDIM,
  show,
  StridedLayout,
} from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { type ArrayParts, firstAddress, type MakeArray } from "../copy/mod.ts";
import type { ImportOptions } from "./tensor.ts";
import { consumerStream, ExchangeError, hostWaitsToRead, orderStreams, producerWaits } from "../order/mod.ts";
import { foreignStart } from "./foreign_range.ts";

/** NumPy's array interface, version 3. */
export interface ArrayInterface {
  /** Extents. */
  readonly shape: readonly number[];
  /** NumPy's type string: `<f4`. */
  readonly typestr: string;
  /** Address of the first element, 0n if there are none, and whether writing is refused. */
  readonly data: readonly [ptr: bigint, readonly: boolean];
  /** Strides in bytes; null if contiguous in C order. */
  readonly strides: readonly number[] | null;
  /** 3. */
  readonly version: number;
}

/** The CUDA Array Interface, version 3. */
export interface CudaArrayInterface extends ArrayInterface {
  /** Handle of the stream that the memory is ordered on: 1n is the legacy default one. null: no ordering needed. */
  readonly stream: bigint | null;
}

/** The names of the two protocols. */
type InterfaceName = "__array_interface__" | "__cuda_array_interface__";

/** Whether an object has this interface. */
export function hasInterface(source: object, name: InterfaceName): boolean {
  return Reflect.get(source, name) !== undefined;
}

// law dlpack/toArrayInterface: dlpack/array_interface, dlpack/host_consumers, order/programs
/**
 * Describes an array in host memory, after waiting for the work that its home stream holds: the description has no
 * stream to wait for.
 */
export function toArrayInterface(array: ArrayParts): ArrayInterface {
  const described = describe(array);
  hostWaitsToRead(array, "__array_interface__");
  return described;
}

function describe(array: ArrayParts): ArrayInterface {
  const { dtype, layout, readonly } = array;
  if (dtype.typestr === null) {
    throw new ExchangeError(
      `Cannot describe ${dtype.name} by the array interface: NumPy has no type string for it. Use DLPack, or view ` +
        "the bytes as unsigned integers.",
    );
  }
  const strides = layout.isContiguousC ? null : layout.stridesInBytes;
  return { shape: layout.shape, typestr: dtype.typestr, data: [firstAddress(array), readonly], strides, version: 3 };
}

/** Describes an array in device memory. */
export function toCudaArrayInterface(array: ArrayParts): CudaArrayInterface {
  const { device, stream: home } = array.buffer;
  if (device === null) {
    throw new ExchangeError(
      "Cannot describe host memory by the CUDA Array Interface. Use DLPack, or copy it to a device.",
    );
  }
  const stream = home === null ? null : handleFor(home, device);
  return { ...describe(array), stream };
}

// law dlpack/handleFor: dlpack/array_interface, dlpack/host_consumers, order/programs
/** The handle of a stream for a consumer on a device. */
function handleFor({ handle, device }: CudaStream, consumer: CudaDevice): bigint {
  if (device !== consumer) {
    throw new ExchangeError(
      `Cannot describe memory of ${consumer} that is ordered on a stream of ${device}: ` +
        `a consumer would take the stream for one of ${consumer}. Give the buffer a home stream ` +
        "there, with setHomeStream(), or use DLPack.",
    );
  }
  // 0 is forbidden because it is ambiguous; the legacy default stream is 1
  return handle || CU_STREAM_LEGACY;
}

// law dlpack/fromArrayInterface: dlpack/array_interface, dlpack/host_consumers, order/programs
/**
 * Imports host memory that an object describes.
 *
 * @param make makes the array from the parts found
 * @param release releases the object, if dropping the last reference is not enough
 */
export function fromArrayInterface<T>(source: unknown, make: MakeArray<T>, release?: () => void): T {
  const { layout, dtype, address, readonly } = readInterface(source, "__array_interface__");
  const offset = bytesBefore(layout);
  const size = offset + bytesFrom(layout);
  const ptr = startAt(address, layout, offset, size, "an array");
  if (release === undefined) {
    const buffer = MemoryBuffer.fromOwner(ptr, size, null, source);
    if (readonly) buffer.protect();
    return make(buffer, offset, layout, dtype, readonly, null);
  }
  const buffer = MemoryBuffer.fromForeign(ptr, size, null, "host", null, source, release, releaseSource);
  if (readonly) buffer.protect();
  return make(buffer, offset, layout, dtype, readonly, buffer);
}

// law dlpack/fromCudaArrayInterface: dlpack/array_interface, dlpack/host_consumers, order/programs, order/refusals,
//   order/default_home
/** Imports device memory that an object describes, in order. See {@linkcode fromArrayInterface}. */
export function fromCudaArrayInterface<T>(
  source: unknown,
  options: ImportOptions,
  make: MakeArray<T>,
  release?: () => void,
): T {
  checkPlace(options, "Cannot import by the CUDA Array Interface");
  const { layout, dtype, address, readonly, stream } = readInterface(source, "__cuda_array_interface__");
  const device = options.stream?.device ?? options.device;
  if (device === undefined) throw noDevice();
  const producer = producerStream(stream, device, options);
  const offset = bytesBefore(layout);
  const size = offset + bytesFrom(layout);
  const ptr = startAt(address, layout, offset, size, "a CUDA array");
  // A consumer that names no stream works on the producer's stream, so nothing has to wait.
  const home = options.stream === undefined ? producer ?? device.defaultStream : options.stream;
  orderStreams(producer, home);
  const buffer = home === null && release === undefined
    // nothing to do when it ends
    ? MemoryBuffer.fromOwner(ptr, size, device, source)
    : release === undefined
    ? MemoryBuffer.fromForeign(ptr, size, device, "device", home, source, producer, returnToProducer)
    : MemoryBuffer.fromForeign(ptr, size, device, "device", home, source, { producer, release }, returnAndRelease);
  if (readonly) buffer.protect();
  return make(buffer, offset, layout, dtype, readonly, buffer);
}

function noDevice(): ExchangeError {
  return new ExchangeError(
    "Cannot import by the CUDA Array Interface, which does not say which device the memory is on: pass { stream } to " +
      "say where the memory will be used, or { device }.",
  );
}

// law dlpack/array_interface/returnToProducer: dlpack/array_interface, dlpack/host_consumers, order/programs
/** Runs at the end of an import: the producer's next work comes after the work enqueued here. */
function returnToProducer(_: bigint, stream: CudaStream | null, producer: CudaStream | null): void {
  if (producer !== null && stream !== null) producerWaits(stream, producer);
}

function releaseSource(_ptr: bigint, _stream: CudaStream | null, release: () => void): void {
  release();
}

// law dlpack/returnAndRelease: dlpack/array_interface
function returnAndRelease(
  ptr: bigint,
  stream: CudaStream | null,
  { producer, release }: { readonly producer: CudaStream | null; readonly release: () => void },
): void {
  returnToProducer(ptr, stream, producer);
  release();
}

// law dlpack/producerStream: dlpack/array_interface, dlpack/host_consumers, order/programs
/** The producer's stream; null if the producer or the consumer wants no ordering. */
function producerStream(stream: unknown, device: CudaDevice, options: ImportOptions): CudaStream | null {
  if (stream === undefined || stream === null) return null;
  const known = typeof stream === "bigint" && options.stream !== null ? device.knownStream(stream) : null;
  if (known !== null) return known;
  const handle = toAddress(stream);
  if (handle === null) throw noHandle(stream);
  if (handle === 0n) throw handleIsNull();
  return options.stream === null ? null : consumerStream(device, handle);
}

function noHandle(stream: unknown): ExchangeError {
  return unusable(`stream is ${show(stream)}, expected null or a handle`);
}

function handleIsNull(): ExchangeError {
  return unusable(
    "stream is 0, which the protocol forbids: it must be 1 for the legacy default stream, 2 for the per-thread one, or " +
      "null",
  );
}

interface Described {
  readonly layout: StridedLayout;
  readonly dtype: DType;
  readonly address: unknown;
  readonly readonly: boolean;
  readonly stream: unknown;
}

/** The fields of a description, of any type. */
type Description = Readonly<
  Partial<Record<"shape" | "typestr" | "descr" | "data" | "strides" | "version" | "mask" | "stream", unknown>>
>;

// law dlpack/readInterface: dlpack/array_interface, dlpack/host_consumers, order/programs
/** Reads and checks a description; the address and the stream are for its caller to check. */
function readInterface(source: unknown, name: InterfaceName): Described {
  const found: unknown = (typeof source === "object" || typeof source === "function") && source !== null
    ? Reflect.get(source, name)
    : undefined;
  if (typeof found !== "object" || found === null) throw noInterface(name);
  const { shape, typestr, descr, data, strides, version, mask, stream }: Description = found;
  if (typeof version !== "number" || !Number.isInteger(version) || version < 0 || version > 3) {
    throw noVersion(version);
  }
  if (mask !== undefined && mask !== null) throw isMasked();
  const dtype = readDtype(typestr, descr);
  const layout = readLayout(shape, strides, dtype.itemsize);
  if (!Array.isArray(data) || data.length !== 2) throw noData(data);
  const address: unknown = data[0]; // destructuring an array would go through an iterator
  return { layout, dtype, address, readonly: Boolean(data[1]), stream };
}

function noInterface(name: InterfaceName): ExchangeError {
  return unusable(`expected an object with ${name}`);
}

function noVersion(version: unknown): ExchangeError {
  return unusable(`version is ${show(version)}, expected 3 or older`);
}

function noData(data: unknown): ExchangeError {
  return unusable(`data is ${show(data)}, expected an address and whether it is read-only`);
}

function isMasked(): ExchangeError {
  return unusable("it has a mask. Fill the masked elements in first, or exchange data and mask as two arrays");
}

function readLayout(shape: unknown, strides: unknown, itemsize: number): StridedLayout {
  const isDense = strides === undefined || strides === null;
  if (Array.isArray(shape) && (isDense || (Array.isArray(strides) && strides.length === shape.length))) {
    const known = cachedLayout(shape, isDense ? null : strides, shape.length, itemsize, itemsize);
    if (known !== null) return known;
  }
  return newLayout(shape, strides, isDense, itemsize);
}

function newLayout(shape: unknown, strides: unknown, isDense: boolean, itemsize: number): StridedLayout {
  const extents = readNumbers("shape", shape, 0);
  const steps = isDense ? null : readNumbers("strides", strides, -Infinity);
  try {
    const layout = new StridedLayout(extents, steps, itemsize, isDense ? undefined : inBytes);
    cacheLayout(layout, !isDense);
    return layout;
  } catch (error) {
    throw refused(error);
  }
}

const inBytes = { divideStrides: true };

function readDtype(typestr: unknown, descr: unknown): DType {
  if (typeof typestr !== "string") throw noTypestr(typestr);
  if (descr !== undefined) checkDescription(typestr, descr);
  try {
    return DType.from(typestr);
  } catch (error) {
    throw refused(error);
  }
}

function checkDescription(typestr: string, descr: unknown): void {
  const isStructured = Array.isArray(descr) &&
    (descr.length !== 1 || !Array.isArray(descr[0]) || descr[0].length !== 2 || descr[0][0] !== "");
  if (isStructured && typestr.includes("V")) {
    throw unusable("its elements are structures. Exchange each field as a separate array");
  }
}

function noTypestr(typestr: unknown): ExchangeError {
  return unusable(`typestr is ${show(typestr)}, expected a string such as "<f4"`);
}

function readNumbers(what: string, values: unknown, least: number): number[] {
  if (!Array.isArray(values)) throw unusable(`${what} is ${show(values)}, expected an array of integers`);
  if (values.length > MAX_NDIM) throw unusable(`it has ${values.length} dimensions, expected at most ${MAX_NDIM}`);
  const numbers: number[] = [];
  for (const value of values as readonly unknown[]) {
    const number = typeof value === "bigint" ? Number(value) : value;
    if (typeof number !== "number" || !Number.isSafeInteger(number) || number < least) {
      throw unusable(`${what} has ${show(value)} in it, expected integers${what === "shape" ? " of at least 0" : ""}`);
    }
    numbers.push(number + 0); // not -0
  }
  return numbers;
}

/** {@linkcode foreignStart} of an address that is unchecked. */
function startAt(address: unknown, layout: StridedLayout, before: number, size: number, what: string): bigint {
  const isUsual = typeof address === "bigint" && before === 0 && layout.volume !== 0 && isFarFromEnds(address);
  return isUsual ? address : foreignStart(layout, readAddress(address), before, size, what);
}

function readAddress(address: unknown): bigint {
  const ptr = address === null ? 0n : toAddress(address);
  if (ptr === null) throw noAddress(address);
  return ptr;
}

function noAddress(address: unknown): ExchangeError {
  return unusable(`its address is ${show(address)}, expected an integer of at least 0`);
}

/** A 64-bit address or handle, or null if the value is neither. */
function toAddress(value: unknown): bigint | null {
  if (typeof value === "number" && Number.isSafeInteger(value)) return value < 0 ? null : BigInt(value);
  return typeof value === "bigint" && isAddress(value) ? value : null;
}

/** An array that the layout room rejects cannot be imported either. */
function refused(cause: unknown): ExchangeError {
  return unusable(cause instanceof Error ? cause.message : String(cause), cause);
}

function unusable(why: string, cause?: unknown): ExchangeError {
  return new ExchangeError(`Cannot import by the array interface: ${why}`, { cause });
}
