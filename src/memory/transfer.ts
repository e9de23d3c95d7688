/**
 * Copies and fills of whole buffers, by the host or enqueued on a stream.
 *
 * @module
 */
import {
  checkStream,
  type CopyDirection,
  type CudaDevice,
  type CudaStream,
  enqueueFill,
  isSameDevice,
} from "../device/mod.ts";
import { noteHostAccess } from "../driver/mod.ts";
import { libc, littleEndian } from "../ffi/mod.ts";
import { type OptionNames, show } from "../layout/mod.ts";
import { accessesBetween, takeAccess } from "./copy_access.ts";
import { partOf } from "./host_bytes.ts";
import type { MemoryBuffer } from "./memory_buffer.ts";
import { copyRun } from "./staging.ts";
import { hostWaitsFor } from "../order/mod.ts";

/** Options of copies. */
export interface CopyOptions {
  /**
   * The stream that the copy is ordered on. Needed if either side is device memory. Between ordinary host buffers the
   * host copies, after waiting for everything enqueued on the stream.
   */
  readonly stream?: CudaStream;
}

/** The names of {@linkcode CopyOptions}. */
export const copyOptionNames: OptionNames<CopyOptions> = { stream: true };

/** Options of {@linkcode MemoryBuffer.fill}. */
export interface FillOptions {
  /** The stream that the fill is ordered on. Needed for device memory. */
  readonly stream?: CudaStream;
  /** Bytes of the value, which is the repeated pattern. Default 1. */
  readonly width?: 1 | 2 | 4;
}

/** The names of {@linkcode FillOptions}. */
export const fillOptionNames: OptionNames<FillOptions> = { stream: true, width: true };

/** One side of a transfer: an open buffer. */
export interface TransferSide {
  readonly buffer: MemoryBuffer;
  /** Its address. */
  readonly ptr: bigint;
  /** The device whose driver copies and fills it; null for ordinary host memory. */
  readonly device: CudaDevice | null;
}

// law memory/copyBytes: sim/behaviours, order/pageable_in_use, copy/peer_copy, memory/host_order,
//   memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource, memory/driver_memory_resource,
//   memory/collection, view/strided_memory_view, memory/memory_programs
/**
 * Copies all bytes from one buffer to another of the same size, which is not 0: see {@linkcode MemoryBuffer.copyFrom}.
 *
 * @throws {TypeError} if device memory is involved and the stream is missing or cannot be used
 */
export function copyBytes(to: TransferSide, from: TransferSide, stream: CudaStream | undefined): void {
  const [destination, source] = [to.buffer, from.buffer];
  const bytes = destination.size;
  const device = to.device ?? from.device;
  if (device === null || (stream === undefined && destination.isHostAccessible && source.isHostAccessible)) {
    hostWaitsFor(stream); // the host copies, and no stream can wait for it
    noteHostAccess(from.ptr, bytes, false, "copyFrom()");
    noteHostAccess(to.ptr, bytes, true, "copyFrom()");
    libc().memory.memmove(to.ptr, from.ptr, BigInt(bytes));
    return;
  }
  if (stream === undefined) throw new TypeError("Cannot copy device memory without a stream: pass { stream }");
  checkStream(stream, device, "Cannot copy on a stream");
  const other = from.device;
  if (other !== null && other.driver !== device.driver) {
    throw new TypeError("Cannot copy a buffer of another Cuda: copy it to the host first");
  }
  const isBetweenTwo = destination.kind === "device" && source.kind === "device" && other !== null &&
    !isSameDevice(device, other);
  const peers = isBetweenTwo ? { from: other, to: device } : null;
  if (peers !== null) takeAccess(accessesBetween(source, peers.from, destination, peers.to), bytes);
  const isPageable = destination.kind === "host" || source.kind === "host";
  const direction = directionOf(source, destination);
  copyRun({ to: to.ptr, from: from.ptr, bytes, direction, isPageable, peers }, stream);
  destination.pinUntilPassed(stream);
  source.pinUntilPassed(stream);
}

// law memory/directionOf: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
function directionOf(source: MemoryBuffer, destination: MemoryBuffer): CopyDirection {
  const onHost = ({ kind }: MemoryBuffer) => kind === "host" || kind === "pinned";
  if (onHost(source)) return onHost(destination) ? "HtoH" : "HtoD";
  return onHost(destination) ? "DtoH" : "DtoD";
}

// law memory/checkFill: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs
/**
 * Throws unless a value can fill a buffer of `size` bytes.
 *
 * @throws {RangeError} if the value does not fit the width, or the size is not a multiple of it
 */
export function checkFill(value: number, width: number, size: number): void {
  if (width !== 1 && width !== 2 && width !== 4) {
    throw new RangeError(`Cannot fill with values of ${show(width)} bytes: expected 1, 2 or 4`);
  }
  if (!Number.isInteger(value) || value < 0 || value >= 256 ** width) {
    throw new RangeError(`Cannot fill with ${show(value)}: expected an integer from 0 to ${256 ** width - 1}`);
  }
  if (size % width !== 0) {
    throw new RangeError(`Cannot fill ${size} bytes with values of ${width}: expected a multiple`);
  }
}

// law memory/fillBytes: memory/memory_buffer, memory/cuda_core_buffer, memory/device_memory_resource,
//   memory/driver_memory_resource, memory/collection, sim/behaviours, view/strided_memory_view,
//   memory/memory_programs, memory/host_order
/**
 * Fills a buffer, whose size is not 0, with a checked value: see {@linkcode MemoryBuffer.fill}.
 *
 * @throws {RangeError} if the address is not a multiple of the width
 * @throws {TypeError} for device memory without a stream
 */
export function fillBytes(
  { buffer, ptr, device }: TransferSide,
  value: number,
  width: 1 | 2 | 4,
  stream: CudaStream | undefined,
): void {
  const { size } = buffer;
  if (width > 1 && Number(ptr & 3n) % width !== 0) {
    throw new RangeError(`Cannot fill from address ${ptr} with values of ${width} bytes: expected a multiple`);
  }
  if (stream !== undefined && device !== null) {
    checkStream(stream, device, "Cannot fill on a stream");
    enqueueFill(stream, ptr, value, width, size);
    return buffer.pinUntilPassed(stream);
  }
  if (!buffer.isHostAccessible) throw new TypeError("Cannot fill device memory without a stream: pass { stream }");
  hostWaitsFor(stream);
  noteHostAccess(ptr, size, true, "fill()");
  if (width === 1) return void libc().memory.memset(ptr, value, BigInt(size)); // no size limit, unlike a runtime's view
  const first = partOf(buffer, 0, width);
  if (width === 2) first.setUint16(0, value, littleEndian);
  else first.setUint32(0, value, littleEndian);
  for (let done = width; done < size; done *= 2) { // what is filled is copied behind itself
    libc().memory.memcpy(ptr + BigInt(done), ptr, BigInt(Math.min(done, size - done)));
  }
}
