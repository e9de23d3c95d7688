/**
 * Copies between any two arrays of one shape: decides what copies, in which order, and how elements are converted.
 *
 * @module
 */
import { checkOpenStream, checkStream, type CudaDevice, type CudaStream } from "../device/mod.ts";
import { bytesBefore, bytesFrom, checkBoolean, checkOptions, type OptionNames, StridedLayout } from "../layout/mod.ts";
import { exactPtrOf, fitsArray, type MemoryBuffer, placeOf, stagingOf } from "../memory/mod.ts";
import { hostWaitsFor, noteElementAccess } from "../order/mod.ts";
import { type ArrayParts, checkOpen } from "./array_parts.ts";
import { type Conversion, conversionOf } from "./conversion.ts";
import { copyOnDevice, copyThroughDense, explainDeviceCopy } from "./device_copy.ts";
import { convertHost, explainHostConversion } from "./host_conversion.ts";
import { copyHost, denseCopy, explainHostCopy, type HostArray, readyFor } from "./host_copy.ts";
import { type HostMemory, runAt } from "./host_move.ts";
import { readBack, runTo } from "./read_back.ts";

/** Options of `view.copyFrom`. */
export interface ViewCopyOptions {
  /** Where the copy is enqueued, if a device is involved. Default: the home stream of the side that has one. */
  readonly stream?: CudaStream;
  /**
   * Whether elements of another type are converted. Default false: another type is an error.
   *
   * Numbers are rounded to nearest, ties to even. Integers wrap around when narrowed; a float is truncated to an
   * integer and saturates, and NaN becomes 0. Only the real part of a complex number is kept, unless the destination is
   * complex; a boolean is true if any part is not 0. The results are the same wherever the elements are. Conversions
   * exist between booleans, integers of 8 to 64 bits, float16, bfloat16, float32, float64, complex64 and complex128.
   */
  readonly convert?: boolean;
}

const viewCopyOptionNames: OptionNames<ViewCopyOptions> = { stream: true, convert: true };

/** Copies elements. See `StridedMemoryView.copyFrom`. */
export function copyElements(from: ArrayParts, to: ArrayParts, options: ViewCopyOptions): void {
  const conversion = checkCopy(from, to, options);
  const device = drivenBy(from, to);
  if (options.stream !== undefined) checkOpenStream(options.stream, "Cannot copy on a stream");
  if (device === null) return copyOnHost(from, to, options, conversion);
  if (to.layout.volume === 0) {
    checkOpen(from);
    return checkOpen(to);
  }
  const stream = orderOf(from, to, device, options);
  if (mayOverlap(from, to)) copyThroughDense(from, to, stream, conversion);
  else copyOnDevice(from, to, stream, conversion);
}

/** Explains how elements would be copied. See `StridedMemoryView.explainCopyFrom`. */
export function explainCopy(from: ArrayParts, to: ArrayParts, options: ViewCopyOptions): string {
  const conversion = checkCopy(from, to, options);
  const text = explain(from, to, conversion, options);
  return mayOverlap(from, to) ? `${text}, by way of a copy, because the two may share memory` : text;
}

function explain(from: ArrayParts, to: ArrayParts, conversion: Conversion | null, options: ViewCopyOptions): string {
  const device = drivenBy(from, to);
  if (device !== null) return explainDeviceCopy(from, to, orderOf(from, to, device, options), conversion);
  if (conversion === null) return explainHostCopy(from.layout, to.layout);
  return explainHostConversion(from.layout, to.layout, conversion);
}

// law copy/readElements: dlpack/host_consumers, dlpack/array_interface, order/programs, copy/page_locked,
//   copy/read_back
/**
 * Copies all elements to JavaScript's own memory, in C order; settles when the copy is complete.
 *
 * @param bytes exactly the size of the elements without gaps; all bytes are written
 * @param given the stream after whose work a device's memory is read, in place of its home stream; what the host can
 *   read is read after the work of both
 */
export async function readElements(
  array: ArrayParts,
  bytes: Uint8Array<ArrayBuffer>,
  given?: CudaStream,
): Promise<void> {
  const { device, stream } = array.buffer;
  const layout = StridedLayout.dense(array.layout.shape, array.dtype.itemsize);
  if (device !== null) {
    const order = given ?? stream ?? device.defaultStream;
    if (given !== undefined) checkStream(given, device, "Cannot read on a stream");
    await readBack(array, bytes, layout, order, stagingOf(runTo(bytes, 0n), order));
    return;
  }
  if (given !== undefined) {
    checkOpenStream(given, "Cannot read on a stream");
    await given.completed();
  }
  if (stream !== null) {
    // Page-locked memory has a home stream, which may have more work by the time it was waited for: so it is copied
    // there.
    await readBack(array, bytes, layout, stream, null);
  } else {
    checkOnHost(array, "read", false);
    copyHost(new OnHost(array), { bytes, offset: 0, layout });
  }
}

// law copy/copyOnHost: copy/device_copy, view/strided_memory_view, copy/home_order, dlpack/host_consumers,
//   dlpack/array_interface, order/programs, copy/page_locked
/** Copies at once on the host, after waiting for page-locked memory as a copy on the stream would. */
function copyOnHost(
  from: ArrayParts,
  to: ArrayParts,
  { stream }: ViewCopyOptions,
  conversion: Conversion | null,
): void {
  if (stream !== undefined || from.buffer.stream !== null || to.buffer.stream !== null) {
    for (const order of new Set([stream, from.buffer.stream, to.buffer.stream])) hostWaitsFor(order);
  }
  checkOnHost(from, "copy from", false);
  checkOnHost(to, "copy to", true);
  if (conversion === null && copyAtOnce(from, to)) return;
  const elements = new OnHost(from);
  const target = new OnHost(to);
  const apart = liesAfter(elements, target) || liesAfter(target, elements) || !mayOverlap(from, to)
    ? elements
    : denseCopy(elements);
  if (conversion === null) copyHost(apart, target);
  else convertHost(apart, target, conversion);
}

// law copy/copyAtOnce: copy/host_copy
/**
 * Fast path for copies by machine code between spans of memory that are disjoint: most copies. Copies of a few
 * elements take half the time if no object is made for either side, nor pairs of values to destructure.
 *
 * @returns whether it has been copied
 */
function copyAtOnce(from: ArrayParts, to: ArrayParts): boolean {
  const fromStart = exactPtrOf(from.buffer);
  const toStart = exactPtrOf(to.buffer);
  if (fromStart === 0 || toStart === 0) return false;
  const ready = readyFor(from.layout, to.layout);
  if (ready === null || ready.moves === null) return false;
  const toFirst = toStart + to.offset + to.layout.sliceOffsetInBytes;
  const fromFirst = fromStart + from.offset + from.layout.sliceOffsetInBytes;
  const { plan } = ready;
  if (fromFirst + plan.from.end > toFirst + plan.to.start && toFirst + plan.to.end > fromFirst + plan.from.start) {
    return false; // the two overlap
  }
  // Layouts of views lie inside their buffers, and transferred memory has no address.
  runAt(ready, toFirst, fromFirst);
  return true;
}

/** Whether one array's memory lies entirely after another's. One of the two orders usually holds: a quick check. */
function liesAfter(one: HostMemory, other: HostMemory): boolean {
  return other.address !== 0 && other.address + other.size <= one.address;
}

/** @returns how each element is converted; null if it is copied unchanged */
function checkCopy(from: ArrayParts, to: ArrayParts, options: ViewCopyOptions): Conversion | null {
  checkOptions(options, viewCopyOptionNames);
  checkBoolean("convert", options.convert);
  if (to.readonly) throw new TypeError("Cannot copy into a read-only view");
  if (options.convert !== true && !from.dtype.equals(to.dtype)) {
    throw new TypeError(
      `Cannot copy ${from.dtype.name} into ${to.dtype.name}: expected equal element types. ` +
        "Pass { convert: true } to convert the elements",
    );
  }
  const source = from.layout.shape;
  const destination = to.layout.shape;
  if (!isSameShape(source, destination)) {
    throw new RangeError(
      `Cannot copy shape (${source.join(", ")}) into (${destination.join(", ")}): expected equal shapes` +
        wayToShape(source, destination),
    );
  }
  return from.dtype === to.dtype ? null : conversionOf(from.dtype, to.dtype);
}

// law copy/wayToShape: copy/host_copy
/** What gives a source the shape of its destination, if anything does. */
function wayToShape(source: readonly number[], destination: readonly number[]): string {
  const to = `([${destination.join(", ")}])`;
  const start = destination.length - source.length;
  const isRepeated = start >= 0 && source.every((extent, i) => extent === 1 || extent === destination[start + i]);
  if (isRepeated) return `. source.broadcastTo${to} repeats it`;
  const count = (shape: readonly number[]) => shape.reduce((product, extent) => product * extent, 1);
  return count(source) === count(destination) ? `. source.reshaped${to} has as many elements` : "";
}

/** A loop, because `some` with its closure took as long as moving ten elements. */
function isSameShape(one: readonly number[], other: readonly number[]): boolean {
  if (one === other) return true;
  if (one.length !== other.length) return false;
  for (let axis = 0; axis < one.length; axis++) if (one[axis] !== other[axis]) return false;
  return true;
}

/** The device that drives a copy, or null if the host copies alone. */
function drivenBy(from: ArrayParts, to: ArrayParts): CudaDevice | null {
  return to.buffer.device ?? from.buffer.device;
}

function orderOf(from: ArrayParts, to: ArrayParts, device: CudaDevice, { stream }: ViewCopyOptions): CudaStream {
  if (stream !== undefined) checkStream(stream, device, "Cannot copy on a stream");
  const other = from.buffer.device;
  if (other !== null && other.driver !== device.driver) {
    throw new TypeError("Cannot copy a view of another Cuda: copy it to the host first");
  }
  return stream ?? to.buffer.stream ?? from.buffer.stream ?? device.defaultStream;
}

/** Whether the spans from the first to the last element of both arrays have bytes in common. */
function mayOverlap(one: ArrayParts, other: ArrayParts): boolean {
  const { ptr, size } = one.buffer;
  const { ptr: otherPtr, size: otherSize } = other.buffer;
  if (ptr + BigInt(size) <= otherPtr || otherPtr + BigInt(otherSize) <= ptr) return false; // the usual case, and quick
  const apart = Number(otherPtr - ptr) + other.offset - one.offset;
  return -bytesBefore(one.layout) < apart + bytesFrom(other.layout) &&
    apart - bytesBefore(other.layout) < bytesFrom(one.layout);
}

function checkOnHost(array: ArrayParts, doing: string, writes: boolean): void {
  if (array.buffer.device !== null) {
    throw new TypeError(`Cannot ${doing} device memory from the host. Copy it to host memory first.`);
  }
  if (!array.buffer.isHostAccessible) array.buffer.bytes(); // throws with the reason
  noteElementAccess(array, writes, doing === "read" ? "view.toTypedArray()" : "view.copyFrom()");
}

/**
 * An array in host memory. Its byte array is made on access: machine code does without. It is its own `memory`, so that
 * a copy makes one object for each side.
 */
class OnHost implements HostArray, HostMemory {
  address: number;
  size: number;
  offset: number;
  readonly layout: StridedLayout;
  readonly #buffer: MemoryBuffer;
  constructor({ buffer, offset, layout }: ArrayParts) {
    this.address = exactPtrOf(buffer);
    this.size = buffer.size;
    this.offset = offset;
    this.layout = layout;
    this.#buffer = buffer;
    if (!fitsArray(buffer.size)) this.#narrow();
  }

  /** Leaves only the memory from the first to the last element: of that there may be a byte array. */
  #narrow(): void {
    const before = bytesBefore(this.layout);
    this.address += this.offset - before;
    this.size = before + bytesFrom(this.layout);
    this.offset = before;
  }

  get memory(): HostMemory {
    return this;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    if (fitsArray(this.#buffer.size)) return this.#buffer.bytes(); // is made once: a copy may ask for each of its rows
    const { memory, at } = placeOf(this.#buffer, this.address - exactPtrOf(this.#buffer), this.size);
    return new Uint8Array(memory, at, this.size);
  }
}
