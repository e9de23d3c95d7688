/**
 * Copies of arrays in memory of their own: on the host, or on a device.
 *
 * @module
 */
import { type ArrayParts, byteCount, copyElements, type MakeArray } from "../copy/mod.ts";
import { CudaDevice, type CudaStream, isSameDevice } from "../device/mod.ts";
import {
  checkOptions,
  type DenseOrder,
  DType,
  type DTypeLike,
  none,
  type OptionNames,
  StridedLayout,
} from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { newArrayBuffer } from "../native/mod.ts";
import { hostWaitsForCopy } from "../order/mod.ts";

/** Where an array can be: on a device, or in ordinary memory of the host. */
export type Place = CudaDevice | "host";

/** How `view.copy` copies. */
export interface ArrayCopyOptions<T extends DTypeLike = DTypeLike> {
  /** How the axes are nested: `"C"` (default), `"F"`, a permutation from the outermost axis on, or `"K"`: as now. */
  readonly order?: DenseOrder | "K";
  /** The type of the copy's elements, which are converted as `copyFrom` with `convert` does. Default: the same. */
  readonly dtype?: T;
  /** Where the copy is. Default: where the array is; page-locked memory is copied to ordinary memory. */
  readonly device?: Place;
  /** Where the copy is enqueued, and allocated. Default: the array's home stream, or the device's default stream. */
  readonly stream?: CudaStream;
}

/** Their names. */
const arrayCopyOptionNames: OptionNames<ArrayCopyOptions> = {
  order: true,
  dtype: true,
  device: true,
  stream: true,
};

/** Options of `view.to`. */
export interface ArrayPlaceOptions {
  /** Where the array will be used, and a copy is enqueued. Default: its home stream, or the device's default stream. */
  readonly stream?: CudaStream;
}

/** Their names. */
export const placeOptionNames: OptionNames<ArrayPlaceOptions> = { stream: true };

/** @throws {TypeError} if it is no place */
export function checkPlaceOfArray(place: unknown): asserts place is Place {
  if (place === "host" || place instanceof CudaDevice) return;
  throw new TypeError(`Cannot place an array at ${String(place)}: expected a CudaDevice, or "host"`);
}

/** Whether an array is there already: page-locked memory is the host's, managed memory its device's. */
export function isAt({ buffer }: ArrayParts, place: Place): boolean {
  if (place === "host" || buffer.device === null) return place === "host" && buffer.device === null;
  return isSameDevice(buffer.device, place);
}

// law view/copyOf: view/array_copies
/**
 * Copies an array to memory of its own, which closing the copy frees. See `StridedMemoryView.copy`.
 *
 * Where ordinary memory of the host takes part in a copy of a device, the host waits until it is done: that memory has
 * no stream that could order what the host does to it next. Page-locked memory has.
 */
export function copyOf<T>(array: ArrayParts, options: ArrayCopyOptions, make: MakeArray<T>): T {
  checkOptions(options, arrayCopyOptionNames);
  const { order = "C", device: place = array.buffer.device ?? "host" } = options;
  const dtype = options.dtype === undefined ? array.dtype : DType.from(options.dtype);
  checkPlaceOfArray(place);
  const nesting = order === "K" ? StridedLayout.denseLike(array.layout).strideOrder : order;
  const layout = StridedLayout.dense(array.layout.shape, dtype.itemsize, nesting);
  const stream = streamFor(array, place, options.stream);
  const buffer = allocateAt(place, byteCount({ layout, dtype }), stream);
  try {
    const given = stream === null ? none : { stream };
    copyElements(array, { buffer, offset: 0, layout, dtype, readonly: false }, {
      ...given,
      convert: dtype !== array.dtype,
    });
    const isEnqueued = array.buffer.device !== null || buffer.device !== null;
    if (isEnqueued && (array.buffer.kind === "host" || buffer.kind === "host")) hostWaitsForCopy(stream);
  } catch (error) {
    buffer.close();
    throw error;
  }
  return make(buffer, 0, layout, dtype, false, buffer);
}

// law view/streamFor: view/array_copies
/** The stream of a copy, which becomes the home of memory of a device; null if no device has to do with it. */
function streamFor({ buffer }: ArrayParts, place: Place, given: CudaStream | undefined): CudaStream | null {
  if (given !== undefined) return given;
  if (place === "host") return buffer.stream ?? buffer.device?.defaultStream ?? null;
  return buffer.stream !== null && isSameDevice(buffer.stream.device, place) ? buffer.stream : place.defaultStream;
}

/** Memory for an array; of JavaScript's own on the host, which is freed when nobody refers to it. */
export function allocateAt(place: Place, bytes: number, stream: CudaStream | null): MemoryBuffer {
  if (place === "host") return MemoryBuffer.fromArrayBuffer(newArrayBuffer(bytes), 0, bytes);
  return place.memory.allocate(bytes, { stream: stream ?? place.defaultStream });
}
