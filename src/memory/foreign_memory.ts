/**
 * Foreign memory, freed by its producer: its address, and whether that is valid.
 *
 * @module
 */
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import { endsBeyondMemory, ffiPort, ownBuffer, ownLength, ownOffset, ownSize } from "../ffi/mod.ts";
import { noSize, type OptionNames, show, showGiven } from "../layout/mod.ts";

/** Options of {@linkcode MemoryBuffer.fromPointer}. */
export interface FromPointerOptions {
  /** What keeps the memory alive; the buffer references it until it is closed. */
  readonly owner?: unknown;
  /** The device whose memory it is. Default: host memory. */
  readonly device?: CudaDevice;
  /**
   * The stream on which a device's memory is used, which consumers on other streams wait for; it must stay open.
   * Default: the device's default stream. `null`: consumers do not wait.
   */
  readonly stream?: CudaStream | null;
  /** Its name in errors, reports and the console. Default: none. */
  readonly name?: string;
}

/** The names of {@linkcode FromPointerOptions}. */
export const fromPointerOptionNames: OptionNames<FromPointerOptions> = {
  owner: true,
  device: true,
  stream: true,
  name: true,
};

// law memory/checkRange: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
/**
 * Throws unless an address can have this many bytes.
 *
 * @throws {RangeError} if the address or the size is negative, the end lies beyond 2^64, or bytes come with a null
 *   pointer
 */
export function checkRange(ptr: bigint, size: number): void {
  if (!Number.isSafeInteger(size) || size < 0) throw noBytes(size);
  if (typeof ptr !== "bigint" || ptr < 0n || endsBeyondMemory(ptr, size) || (ptr === 0n && size > 0)) {
    throw noRange(ptr, size);
  }
}

function noBytes(size: number): RangeError {
  return noSize(`make a buffer of ${show(size)} bytes`, size);
}

function noRange(ptr: bigint, size: number): RangeError {
  return new RangeError(
    `Cannot make a buffer of ${size} bytes at address ${show(ptr)}: expected a 64-bit address as a bigint, ` +
      "other than 0n",
  );
}

// law memory/addressWithin: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
/**
 * Address of a part of an ArrayBuffer; 0n if the part has no bytes.
 *
 * @throws {TypeError} for a resizable ArrayBuffer, whose memory may move
 * @throws {RangeError} if it has no such part
 */
export function addressWithin(owner: ArrayBuffer, byteOffset: number, size: number): bigint {
  if (!(owner instanceof ArrayBuffer)) throw noArrayBuffer(owner);
  const start = ffiPort().addressOf(owner);
  const areIntegers = Number.isInteger(byteOffset) && Number.isInteger(size);
  if (!areIntegers || byteOffset < 0 || size < 0 || byteOffset + size > ownSize(owner)) {
    throw notWithin(owner, byteOffset, size);
  }
  return size === 0 ? 0n : byteOffset === 0 ? start : start + BigInt(byteOffset);
}

/**
 * Separate, because this code would keep V8 from inlining the caller, which is on the path of views of typed arrays.
 */
function notWithin(owner: ArrayBuffer, byteOffset: number, size: number): Error {
  const message =
    `Cannot make a buffer of ${show(size)} bytes at offset ${show(byteOffset)}: expected integers within ` +
    `${ownSize(owner)} bytes`;
  return typeof size === "number" && typeof byteOffset === "number" ? new RangeError(message) : new TypeError(message);
}

/**
 * Address of the elements of a typed array, which must be kept alive; 0n if there are no elements.
 *
 * @throws {TypeError} for an array over shared or resizable memory
 */
export function addressOfArray(array: ArrayBufferView): bigint {
  if (!ArrayBuffer.isView(array)) throw noArray(array);
  const buffer = ownBuffer(array);
  if (!(buffer instanceof ArrayBuffer)) throw noArray(array);
  return ownLength(array) === 0 ? 0n : ffiPort().addressOf(buffer) + BigInt(ownOffset(array));
}

// law memory/noAddress: view/no_array
/**
 * The error for an array's memory that is no ArrayBuffer: it is shared, or of another JavaScript context, where
 * `ArrayBuffer` is another class.
 *
 * @param doing what cannot be done with it: `view`
 * @param ifShared the message for shared memory
 */
export function noAddress(doing: string, buffer: ArrayBufferLike, ifShared: string): TypeError {
  const isShared = typeof SharedArrayBuffer === "function" && buffer instanceof SharedArrayBuffer;
  const ifElsewhere = `Cannot ${doing} an array of another JavaScript context, as node:vm and Jest make them: copy ` +
    "it to one of this context, such as a new Float32Array(array)";
  return new TypeError(isShared ? ifShared : ifElsewhere);
}

function noArrayBuffer(given: unknown): TypeError {
  const way = ArrayBuffer.isView(given) ? ". StridedMemoryView.fromTypedArray() views an array" : "";
  return new TypeError(`Cannot make a buffer: expected an ArrayBuffer, got ${showGiven(given)}${way}`);
}

function noArray(given: unknown): TypeError {
  if (ArrayBuffer.isView(given)) {
    const ifShared = "Cannot copy a SharedArrayBuffer: copy it into an unshared array first, with slice()";
    return noAddress("copy", ownBuffer(given), ifShared);
  }
  const way = given instanceof ArrayBuffer
    ? ": new Uint8Array(it) is one"
    : typeof given === "object" && given !== null && "buffer" in given
    ? ": copy a view with view.copyFrom(source)"
    : "";
  return new TypeError(`Cannot copy: expected a MemoryBuffer or a typed array, got ${showGiven(given)}${way}`);
}
