/**
 * Reads arrays from `.npy` files.
 *
 * @module
 */
import { checkOpenStream, checkSameDevice, type CudaStream } from "../device/mod.ts";
import { checkOptions, DType, type DTypeLike, type OptionNames } from "../layout/mod.ts";
import { allocateFrom, HostMemoryResource, type MemoryBuffer, type MemoryResource } from "../memory/mod.ts";
import { checkPlaceOfArray, checkResource, makeView, type Place, StridedMemoryView } from "../view/mod.ts";
import { about } from "./error.ts";
import { checkProgress, fill, type Progress } from "./fill.ts";
import { elementBytes, prefixBytes, readHeader, readPrefix } from "./npy_header.ts";
import { type ByteSource, type FileContents, openContents, readFully, sourceOf } from "./source.ts";

/** Where arrays from files are placed, and how progress is reported. */
export interface ReadNpyOptions {
  /** Read into this device's memory, through pinned memory. Default: `"host"`, ordinary memory. */
  readonly device?: Place;
  /** Allocate from this resource instead: pinned memory, managed memory, a custom pool. */
  readonly memory?: MemoryResource;
  /** The array's home stream, in whose order its memory is allocated. Default: the resource's choice. */
  readonly stream?: CudaStream;
  /** Called before the first block of 8 MiB and after each block: bytes read so far, and the array's total. */
  readonly onProgress?: Progress;
  /**
   * The type of elements for which the file states only their size in bytes (`V2`): NumPy writes bfloat16 and the other
   * ml_dtypes types that way. Ignored for other files.
   */
  readonly rawDtype?: DTypeLike;
}

/** The names of the options. */
export const readNpyOptionNames: OptionNames<ReadNpyOptions> = {
  device: true,
  memory: true,
  stream: true,
  onProgress: true,
  rawDtype: true,
};

/**
 * Reads an array from a NumPy `.npy` file: versions 1 to 3, C and Fortran order, numbers of either byte order. The
 * elements go straight to their memory, in blocks; at most one block of them is held in JavaScript's own memory. The
 * view owns the memory: closing it frees it. Copies to device memory that are still in flight are ordered before
 * whatever the view's stream does next. Bytes in the file after the array are ignored.
 *
 * @param file a path, a Blob or File, or the file's bytes
 * @throws {SystemError} if it cannot be opened or read
 * @throws {NpyError} if it is damaged, or does not hold an array of numbers: objects (nothing is ever unpickled), text,
 *   times, structures
 * @throws {TypeError} for both `device` and `memory`, or a stream without either
 *
 * @example
 * ```ts files
 * import { readNpy } from "@causeway/causeway";
 *
 * using digits = await readNpy("examples/digits.npy"); // a file of this repository's
 * console.log(digits.dtype.name, digits.shape); // uint8 [ 1797, 8, 8 ]
 * ```
 */
export async function readNpy(file: FileContents, options: ReadNpyOptions = {}): Promise<StridedMemoryView> {
  checkReadOptions(options);
  using contents = await openContents(file);
  try {
    return await readArray(sourceOf(contents, 0, contents.size), options);
  } catch (error) {
    throw about(contents.name, error);
  }
}

// law files/checkReadOptions: files/options
/** Throws for options of the wrong type, and for options that contradict each other. */
export function checkReadOptions(options: ReadNpyOptions): void {
  checkOptions(options, readNpyOptionNames);
  const { device, memory, stream, onProgress } = options;
  if (device !== undefined) checkPlaceOfArray(device);
  if (memory !== undefined) checkResource(memory);
  checkProgress(onProgress);
  if (device !== undefined && memory !== undefined) {
    throw new TypeError("Cannot read into two places: expected device or memory, got both");
  }
  if (stream === undefined) return;
  checkOpenStream(stream, "Cannot read a file in the order of a stream");
  if ((device ?? "host") === "host" && memory === undefined) {
    throw new TypeError("Cannot read host memory in the order of a stream: pass { device } or { memory }, too");
  }
  if (device !== undefined && device !== "host") {
    checkSameDevice(stream, device, "Cannot read a file in the order of a stream");
  }
}

/**
 * Reads an array from its header to its last element.
 *
 * @param atEnd called when everything is read, before the view is returned
 */
export async function readArray(
  source: ByteSource,
  options: ReadNpyOptions,
  atEnd?: () => Promise<void>,
): Promise<StridedMemoryView> {
  const raw = options.rawDtype === undefined ? undefined : DType.from(options.rawDtype);
  const prefix = new Uint8Array(prefixBytes);
  let got = await source.read(prefix.subarray(0, 10));
  if (got === 10 && prefix[6] !== 1) got += await source.read(prefix.subarray(10)); // later versions: 2 more bytes
  const place = readPrefix(prefix, got, source.size);
  const text = new Uint8Array(place.to - place.from);
  await readFully(source, text);
  const header = readHeader(text, place.encoding, raw);
  const { dtype, layout, swapped } = header;
  const buffer = allocate(elementBytes(header, source.size - place.to), options);
  try {
    {
      using _ = buffer.pinned(); // a resource of one's own knows it, and may close it
      await fill(buffer, source, swapped, options.onProgress);
      await atEnd?.();
    }
    void buffer.ptr; // throws if it was closed
  } catch (error) {
    buffer.close();
    throw error;
  }
  return StridedMemoryView[makeView](buffer, 0, layout, dtype, false, buffer);
}

function allocate(bytes: number, { device, memory, stream }: ReadNpyOptions): MemoryBuffer {
  const resource = memory ?? (device === undefined || device === "host" ? new HostMemoryResource() : device.memory);
  return allocateFrom(resource, bytes, stream === undefined ? {} : { stream });
}
