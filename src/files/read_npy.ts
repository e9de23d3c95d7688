/**
 * Reads arrays from `.npy` files.
 *
 * @module
 */
import { checkOpenStream, checkSameDevice, type CudaStream } from "../device/mod.ts";
import { checkOptions, DType, type DTypeLike, type OptionNames } from "../layout/mod.ts";
import { HostMemoryResource, type MemoryBuffer, type MemoryResource } from "../memory/mod.ts";
import { checkPlaceOfArray, checkResource, makeView, type Place, StridedMemoryView } from "../view/mod.ts";
import { about, NpyError } from "./error.ts";
import { checkProgress, fill, type Progress } from "./fill.ts";
import { prefixBytes, readHeader, readPrefix } from "./npy_header.ts";
import { type ByteSource, type FileContents, openContents, readFully, sourceOf } from "./source.ts";

/** Where arrays from files are put, and what is told meanwhile. */
export interface ReadNpyOptions {
  /** Put it into this device's memory, through pinned memory. Default: `"host"`, ordinary memory. */
  readonly device?: Place;
  /** Allocate from here instead: pinned memory, managed memory, a pool of one's own. */
  readonly memory?: MemoryResource;
  /** The array's home stream, which its memory is allocated in the order of. Default: as the resource chooses. */
  readonly stream?: CudaStream;
  /** Called before the first block of 8 MiB and after each: bytes that are read, and all of the array's. */
  readonly onProgress?: Progress;
  /**
   * The type of elements of which the file says only how many bytes they have (`V2`): so NumPy writes bfloat16 and the
   * other types of ml_dtypes. Other files are read as they say.
   */
  readonly rawDtype?: DTypeLike;
}

/** Their names. */
export const readNpyOptionNames: OptionNames<ReadNpyOptions> = {
  device: true,
  memory: true,
  stream: true,
  onProgress: true,
  rawDtype: true,
};

/**
 * Reads an array from a `.npy` file of NumPy's: versions 1 to 3, C and Fortran order, numbers of either byte order. The
 * elements go straight to their memory, in blocks; no more than a block of them is memory of JavaScript's own.
 * The view owns the memory: closing it frees it. Elements of device memory that are still on their way come before
 * whatever the view's stream does next. What is in the file behind the array is left alone.
 *
 * @param file a path, a Blob or File, or the file's bytes
 * @throws {SystemError} if it cannot be opened or read
 * @throws {NpyError} if it is damaged, or holds what is no array of numbers: objects (nothing is ever
 *   unpickled), text, times, structures
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
/** Throws for options of another kind, and for those that contradict each other. */
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
 * @param atEnd is called when everything is read, before anybody has the view
 */
export async function readArray(
  source: ByteSource,
  options: ReadNpyOptions,
  atEnd?: () => Promise<void>,
): Promise<StridedMemoryView> {
  const raw = options.rawDtype === undefined ? undefined : DType.from(options.rawDtype);
  const prefix = new Uint8Array(prefixBytes);
  let got = await source.read(prefix.subarray(0, 10));
  if (got === 10 && prefix[6] !== 1) got += await source.read(prefix.subarray(10)); // later versions have 2 bytes more
  const place = readPrefix(prefix, got);
  if (place.to > source.size) {
    throw new NpyError(`the file is truncated: its header alone ends at byte ${place.to}, the file at ${source.size}`);
  }
  const text = new Uint8Array(place.to - place.from);
  await readFully(source, text);
  const { dtype, layout, swapped } = readHeader(text, place.encoding, raw);
  const [promised, present] = [layout.volume * dtype.itemsize, source.size - place.to];
  if (present < promised) {
    throw new NpyError(`the file is truncated: its header promises ${promised} bytes of data, it has ${present}`);
  }
  const buffer = allocate(promised, options);
  try {
    await fill(buffer, source, swapped, options.onProgress);
    await atEnd?.();
  } catch (error) {
    buffer.close();
    throw error;
  }
  return StridedMemoryView[makeView](buffer, 0, layout, dtype, false, buffer);
}

function allocate(bytes: number, { device, memory, stream }: ReadNpyOptions): MemoryBuffer {
  const resource = memory ?? (device === undefined || device === "host" ? new HostMemoryResource() : device.memory);
  return resource.allocate(bytes, stream === undefined ? {} : { stream });
}
