/**
 * Writes arrays to `.npy` files.
 *
 * @module
 */
import { placeOf } from "../memory/mod.ts";
import { hostReady, noteElementAccess } from "../order/mod.ts";
import { checkOptions, type OptionNames, showGiven, slice, type StridedLayout } from "../layout/mod.ts";
import { type ArrayParts, readElements } from "../copy/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { blockBytes, checkProgress, type Progress } from "./fill.ts";
import { type ByteSink, createFile } from "./new_file.ts";
import { writeHeader } from "./npy_header.ts";

/** Options of {@linkcode writeNpy}. */
export interface WriteNpyOptions {
  /** Called before the first block of 8 MiB and after each block: bytes written so far, and the array's total. */
  readonly onProgress?: Progress;
}

const writeNpyOptionNames: OptionNames<WriteNpyOptions> = { onProgress: true };

/**
 * Writes an array to a `.npy` file: host or device memory, in any layout. Elements in C or Fortran order are written as
 * stored, others in C order, a block at a time. Device memory and page-locked memory are read on their home stream.
 * Types that NumPy does not know by name, such as bfloat16, are written as ml_dtypes makes NumPy write them:
 * `np.load(file).view(ml_dtypes.bfloat16)` reads them. The view must stay open, and its elements the same, until the
 * promise settles.
 *
 * A file that is there stays until the new one is complete, and replaces it, so readers see one of the two; if writing
 * fails, it is as before. What cannot be replaced is written in place, and incomplete if that fails: a pipe or a
 * device, a file with several names or of another user or group, and a file in a folder that may not be written to.
 *
 * A stream gets the same bytes in blocks of 8 MiB at most, as it takes them, and is closed; or aborted if that fails.
 *
 * @param target a path, or a stream, such as that of a response
 * @throws {SystemError} if the file cannot be written
 * @throws what the stream fails with, and a TypeError if it is locked
 * @throws {NpyError} for packed sub-byte elements, or elements with several lanes
 *
 * @example
 * ```ts files
 * import { readNpy, StridedMemoryView, writeNpy } from "@causeway/causeway";
 *
 * const table = StridedMemoryView.fromTypedArray(Float64Array.of(1, 2, 3, 4, 5, 6), { shape: [2, 3] });
 * await writeNpy("/tmp/causeway-table.npy", table.permuted([1, 0]));
 * using back = await readNpy("/tmp/causeway-table.npy");
 * console.log(back.shape, back.strides); // [ 3, 2 ] [ 1, 3 ]
 * ```
 */
export async function writeNpy(
  target: string | URL | WritableStream<Uint8Array<ArrayBuffer>>,
  view: StridedMemoryView,
  options: WriteNpyOptions = {},
): Promise<void> {
  if (target instanceof WritableStream) {
    return await writeToStream(target, async (sink) => {
      const start = checked(view, options); // here: who reads the stream must learn of an error
      using _ = view.buffer.pinned();
      await writeArray(sink, view, start, options.onProgress);
    });
  }
  const start = checked(view, options);
  using _ = view.buffer.pinned(); // first: that of a closed view is an error, before a file is replaced
  await using file = createFile(target);
  await writeArray(file, view, start, options.onProgress);
  file.commit();
}

/** @returns the bytes that precede the elements */
function checked(view: StridedMemoryView, options: WriteNpyOptions): Uint8Array {
  checkOptions(options, writeNpyOptionNames);
  checkProgress(options.onProgress);
  return headerFor(view);
}

// law files/writeToStream: files/write_npy
/** Writes to a stream, and closes it; or aborts it if that fails. What is written is copied: readers may keep it. */
export async function writeToStream(
  stream: WritableStream<Uint8Array<ArrayBuffer>>,
  write: (sink: ByteSink) => Promise<void>,
): Promise<void> {
  const writer = stream.getWriter();
  try {
    await write({ write: (bytes) => writer.write(bytes.slice()) });
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(() => {}); // it may have failed by itself
    throw error;
  } finally {
    writer.releaseLock();
  }
}

// law files/headerFor: files/write_input
/**
 * The bytes that precede the elements of a view.
 *
 * @param where the view is expected, for the error about anything else
 * @throws {NpyError} if its elements cannot be written
 * @throws {TypeError} for anything other than a view
 */
export function headerFor(view: StridedMemoryView, where = "behind the path in writeNpy(path, view)"): Uint8Array {
  if (!(view instanceof StridedMemoryView)) throw notAView(view, where);
  const { layout, dtype } = view;
  return writeHeader(dtype, layout.shape, isWrittenAsFortran(layout));
}

/** Untyped programs may pass a typed array, nested arrays, or the view before the path. */
function notAView(value: unknown, where: string): TypeError {
  return new TypeError(
    `Cannot write a NumPy file: expected a StridedMemoryView, ${where}, got ${showGiven(value)}. ` +
      "StridedMemoryView.from() views an array, and fromArray() copies nested arrays of numbers",
  );
}

function isWrittenAsFortran(layout: StridedLayout): boolean {
  return layout.isContiguousF && !layout.isContiguousC;
}

/** Writes a header and the elements of a view. */
export async function writeArray(
  sink: ByteSink,
  view: StridedMemoryView,
  header: Uint8Array,
  progress?: Progress,
): Promise<void> {
  await sink.write(header);
  const total = view.nbytes;
  progress?.(0, total);
  let done = 0;
  // In Fortran order the elements are those of the transposed array in C order.
  const axes = view.shape.map((_, axis) => axis).reverse();
  for (const part of partsOf(isWrittenAsFortran(view.layout) ? view.permuted(axes) : view)) {
    await sink.write(await bytesOf(part));
    progress?.(done += part.nbytes, total);
  }
}

/** A view in parts of at most a block, in C order. */
function* partsOf(view: StridedMemoryView): Generator<StridedMemoryView> {
  const { nbytes, shape: [rows = 1] } = view;
  if (nbytes === 0) return;
  if (nbytes <= blockBytes) return void (yield view);
  const at = Math.floor(blockBytes / (nbytes / rows));
  if (at === 0) { for (let row = 0; row < rows; row++) yield* partsOf(view.sliced(row)); }
  else for (let row = 0; row < rows; row += at) yield view.sliced(slice(row, Math.min(rows, row + at)));
}

/** The bytes of the elements in C order: the memory itself if it is host-accessible and in C order, else a copy. */
async function bytesOf(part: StridedMemoryView): Promise<Uint8Array> {
  const { buffer, offset, layout, nbytes } = part;
  if (buffer.isHostAccessible && layout.isContiguousC) {
    await hostReady(buffer);
    noteElementAccess(part, false, "writeNpy()");
    const { memory, at } = placeOf(buffer, offset + layout.sliceOffsetInBytes, nbytes);
    return new Uint8Array(memory, at, nbytes);
  }
  const copy = new Uint8Array(nbytes);
  await readElements(part satisfies ArrayParts, copy);
  return copy;
}
