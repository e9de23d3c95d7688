/**
 * Copies of arrays in new memory: on the host, or on a device.
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
  show,
  showGiven,
  StridedLayout,
} from "../layout/mod.ts";
import {
  allocateFrom,
  DeviceMemoryResource,
  DriverMemoryResource,
  MemoryBuffer,
  MemoryResource,
} from "../memory/mod.ts";
import { newArrayBuffer } from "../native/mod.ts";
import { hostWaitsForCopy } from "../order/mod.ts";

/** Where an array can be: on a device, or in ordinary host memory. */
export type Place = CudaDevice | "host";

/** How `view.copy` copies. */
export interface ArrayCopyOptions<T extends DTypeLike = DTypeLike> {
  /** How the axes are nested: `"C"` (default), `"F"`, a permutation from the outermost axis in, or `"K"`: unchanged. */
  readonly order?: DenseOrder | "K";
  /** The type of the copy's elements, which are converted as `copyFrom` with `convert` does. Default: the same. */
  readonly dtype?: T;
  /** Where the copy is. Default: where the array is; page-locked memory is copied to ordinary memory. */
  readonly device?: Place;
  /** The resource that allocates the copy: page-locked or managed memory, a custom pool. Default: as `device` says. */
  readonly memory?: MemoryResource;
  /**
   * The stream on which the copy is enqueued and allocated. Default: the array's home stream, or the device's default
   * one.
   */
  readonly stream?: CudaStream;
}

/** The names of {@linkcode ArrayCopyOptions}. */
const arrayCopyOptionNames: OptionNames<ArrayCopyOptions> = {
  order: true,
  dtype: true,
  device: true,
  memory: true,
  stream: true,
};

/** Options of `view.to`. */
export interface ArrayPlaceOptions {
  /** Where the array will be used and a copy enqueued. Default: its home stream, or the device's default stream. */
  readonly stream?: CudaStream;
}

/** The names of {@linkcode ArrayPlaceOptions}. */
export const placeOptionNames: OptionNames<ArrayPlaceOptions> = { stream: true };

/** @throws {TypeError} if it is not a place */
export function checkPlaceOfArray(place: unknown): asserts place is Place {
  if (place === "host" || place instanceof CudaDevice) return;
  const way = typeof place === "number" ? `: use cuda.device(${place})` : "";
  throw new TypeError(`Cannot place an array at ${showGiven(place)}: expected a CudaDevice, or "host"${way}`);
}

/** Whether an array is there already: page-locked memory counts as the host's, managed memory as its device's. */
export function isAt({ buffer }: Pick<ArrayParts, "buffer">, place: Place): boolean {
  if (place === "host" || buffer.device === null) return place === "host" && buffer.device === null;
  return isSameDevice(buffer.device, place);
}

// law view/copyOf: view/array_copies
/**
 * Copies an array to new memory, which closing the copy frees. See `StridedMemoryView.copy`.
 *
 * If a device copy involves ordinary host memory, the host waits until it is done: that memory has no stream to order
 * what the host does to it next. Page-locked memory has one.
 */
export function copyOf<T>(array: ArrayParts, options: ArrayCopyOptions, make: MakeArray<T>): T {
  checkOptions(options, arrayCopyOptionNames);
  const { order = "C", memory } = options;
  const dtype = options.dtype === undefined ? array.dtype : DType.from(options.dtype);
  if (options.device !== undefined) checkPlaceOfArray(options.device);
  const nesting = order === "K" ? StridedLayout.denseLike(array.layout).strideOrder : order;
  const layout = StridedLayout.dense(array.layout.shape, dtype.itemsize, nesting);
  const place = memory === undefined ? options.device ?? array.buffer.device ?? "host" : placeOf(memory);
  const stream = streamFor(array, place, options.stream);
  const bytes = byteCount({ layout });
  const buffer = memory === undefined
    ? allocateAt(place, bytes, stream)
    : allocateIn(memory, bytes, place === "host" ? options.stream : stream ?? undefined, options.device);
  return newArray(buffer, layout, dtype, make, (copy) => {
    const given = stream === null ? none : { stream };
    copyElements(array, copy, { ...given, convert: dtype !== array.dtype });
    const isEnqueued = array.buffer.device !== null || buffer.device !== null;
    if (isEnqueued && (array.buffer.kind === "host" || buffer.kind === "host")) hostWaitsForCopy(stream);
  });
}

// law view/newArray: view/create, view/array_copies
/** An array in new memory, which closing the array frees; if filling it fails, the memory is freed at once. */
export function newArray<T>(
  buffer: MemoryBuffer,
  layout: StridedLayout,
  dtype: DType,
  make: MakeArray<T>,
  fill: (array: ArrayParts) => void,
): T {
  try {
    fill({ buffer, offset: 0, layout, dtype, readonly: false });
  } catch (error) {
    buffer.close();
    throw error;
  }
  return make(buffer, 0, layout, dtype, false, buffer);
}

// law view/streamFor: view/array_copies
/** The stream of a copy, which becomes the home stream of device memory; null if no device is involved. */
function streamFor({ buffer }: ArrayParts, place: Place, given: CudaStream | undefined): CudaStream | null {
  if (given !== undefined) return given;
  if (place === "host") return buffer.stream ?? buffer.device?.defaultStream ?? null;
  return buffer.stream !== null && isSameDevice(buffer.stream.device, place) ? buffer.stream : place.defaultStream;
}

/** Memory for an array; on the host an ArrayBuffer, which the garbage collector frees. */
export function allocateAt(place: Place, bytes: number, stream: CudaStream | null): MemoryBuffer {
  if (place === "host") return MemoryBuffer.fromArrayBuffer(newArrayBuffer(bytes), 0, bytes);
  return place.memory.allocate(bytes, { stream: stream ?? place.defaultStream });
}

/** The place whose streams order a resource's allocations, as far as known before allocating. */
function placeOf(memory: MemoryResource): Place {
  if (memory instanceof DeviceMemoryResource || memory instanceof DriverMemoryResource) return memory.device;
  checkResource(memory);
  return "host";
}

/** @throws {TypeError} if it is not a resource */
export function checkResource(memory: MemoryResource): void {
  if (memory instanceof MemoryResource) return;
  const way = "expected a MemoryResource, such as new PinnedMemoryResource(device)";
  if (!(memory as unknown instanceof MemoryBuffer)) throw new TypeError(`Cannot allocate from ${show(memory)}: ${way}`);
  throw new TypeError(
    `Cannot allocate from a MemoryBuffer: ${way}. StridedMemoryView.fromBuffer() views a buffer`,
  );
}

// law view/allocateIn: view/create
/**
 * Memory for an array from a resource. All but ordinary host memory then has a home stream, if any is known: what fills
 * it comes before whatever its next user does.
 *
 * @throws {TypeError} if it is not in the requested place, or a stream is given for memory that no stream orders
 */
export function allocateIn(
  memory: MemoryResource,
  bytes: number,
  given: CudaStream | undefined,
  wanted: Place | undefined,
): MemoryBuffer {
  const place = placeOf(memory);
  const stream = given ?? (place === "host" ? undefined : place.defaultStream);
  const buffer = allocateFrom(memory, bytes, stream === undefined ? none : { stream });
  try {
    if (wanted !== undefined && !isAt({ buffer }, wanted)) {
      const at = buffer.device ?? "the host";
      throw new TypeError(
        `Cannot place an array on ${wanted === "host" ? "the host" : wanted} in ${buffer.kind} memory of ${at}: ` +
          "expected both to agree. Leave device out: { memory } determines where the array is",
      );
    }
    if (buffer.kind === "host") {
      if (given !== undefined) throw noStreamOfHost();
    } else if (buffer.stream === null) {
      const home = stream ?? buffer.device?.defaultStream;
      if (home !== undefined) buffer.setHomeStream(home);
    }
  } catch (error) {
    buffer.close();
    throw error;
  }
  return buffer;
}

/** The error for a stream that would order nothing. */
export function noStreamOfHost(): TypeError {
  return new TypeError(
    "Cannot order a host array on a stream: expected a device. Pass { device, stream }, or { memory, stream } " +
      "for page-locked memory",
  );
}
