/**
 * Fills of arrays with one value.
 *
 * @module
 */
import { checkOpenStream, checkStream, type CudaStream, enqueueFill, isSameDevice } from "../device/mod.ts";
import { bytesBefore, checkOptions, type ElementValue, type OptionNames, StridedLayout } from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { orderStreams } from "../order/mod.ts";
import { type ArrayParts, checkOpen } from "./array_parts.ts";
import { copyElements } from "./copy.ts";
import { copyOnDevice } from "./device_copy.ts";
import { temporary } from "./copy_operand.ts";

/** Options of `view.fill`. */
export interface ViewFillOptions {
  /** Where the fill is enqueued, if a device is involved. Default: the memory's home stream. */
  readonly stream?: CudaStream;
}

const viewFillOptionNames: OptionNames<ViewFillOptions> = { stream: true };

// law copy/fillElements: copy/fill
/** Writes a value to every element. See `StridedMemoryView.fill`. */
export function fillElements(array: ArrayParts, value: ElementValue, options: ViewFillOptions): void {
  checkOptions(options, viewFillOptionNames);
  const { buffer, dtype, layout } = array;
  if (array.readonly) throw new TypeError("Cannot fill a read-only view: expected a writable one. copy() it");
  const bytes = new Uint8Array(new ArrayBuffer(Math.ceil(dtype.itemsize)));
  dtype.write(new DataView(bytes.buffer), 0, value);
  const { device } = buffer;
  if (options.stream !== undefined) {
    if (device === null) checkOpenStream(options.stream, "Cannot fill on a stream");
    else checkStream(options.stream, device, "Cannot fill on a stream");
  }
  checkOpen(array);
  if (layout.volume === 0) return;
  const element = StridedLayout.dense([], dtype.itemsize);
  const memory = MemoryBuffer.fromArrayBuffer(bytes.buffer, 0, bytes.length);
  const one = { buffer: memory, offset: 0, layout: element, dtype, readonly: true };
  if (device === null) return copyElements(repeated(one, layout), array, options);
  const stream = options.stream ?? buffer.stream ?? device.defaultStream;
  const pattern = isSameDevice(stream.device, device) ? patternOf(bytes, array) : null;
  if (pattern !== null) return fillRun(array, pattern, stream);
  // The device repeats the element: for a copy the host would have to write all elements.
  using there = temporary(element, stream);
  copyOnDevice(one, there, stream);
  copyElements(repeated({ ...one, ...there }, layout), array, { stream });
}

/** Broadcasts an array of one element to a shape. */
function repeated(one: ArrayParts, { shape }: StridedLayout): ArrayParts {
  return { ...one, layout: one.layout.broadcastTo(shape) };
}

/** A value with which the driver can fill: a number of `width` bytes. */
interface Pattern {
  readonly value: number;
  readonly width: 1 | 2 | 4;
}

/** The shortest number that an element repeats, if the array is one contiguous run aligned to it; else null. */
function patternOf(element: Uint8Array<ArrayBuffer>, { buffer, offset, layout, dtype }: ArrayParts): Pattern | null {
  if (!layout.isContiguousAny || dtype.isPacked) return null;
  const start = buffer.ptr + BigInt(offset - bytesBefore(layout));
  for (const width of [1, 2, 4] as const) {
    if (element.length % width !== 0 || start % BigInt(width) !== 0n) continue;
    if (element.some((byte, at) => byte !== element[at % width])) continue;
    const view = new DataView(element.buffer);
    const value = width === 1 ? view.getUint8(0) : width === 2 ? view.getUint16(0, true) : view.getUint32(0, true);
    return { value, width };
  }
  return null;
}

function fillRun({ buffer, offset, layout }: ArrayParts, { value, width }: Pattern, stream: CudaStream): void {
  const { stream: home, ptr } = buffer;
  const start = ptr + BigInt(offset - bytesBefore(layout));
  orderStreams(home, stream);
  enqueueFill(stream, start, value, width, layout.volume * layout.itemsize);
  orderStreams(stream, home);
  buffer.pinUntilPassed(stream);
}
