/**
 * Writes arrays to `.npy` files.
 *
 * @module
 */
import { hostReady, noteElementAccess } from "../order/mod.ts";
import { checkPath, missingFile, namingErrors, nodeBuiltin, systemErrorOf } from "../ffi/mod.ts";
import { checkOptions, type OptionNames, showGiven, slice, type StridedLayout } from "../layout/mod.ts";
import { type ArrayParts, readElements } from "../copy/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { blockBytes, checkProgress, type Progress } from "./fill.ts";
import { NpyError } from "./error.ts";
import { writeHeader } from "./npy_header.ts";

/** Options of {@linkcode writeNpy}. */
export interface WriteNpyOptions {
  /** Called before the first block of 8 MiB and after each block: bytes written so far, and the array's total. */
  readonly onProgress?: Progress;
}

const writeNpyOptionNames: OptionNames<WriteNpyOptions> = { onProgress: true };

/** A sequential sink of bytes. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>;
}

/**
 * Writes an array to a `.npy` file, replacing an existing one: host or device memory, in any layout. Elements in C or
 * Fortran order are written as stored, others in C order, a block at a time. Device memory and page-locked memory are
 * read on their home stream. Types that NumPy does not know by name, such as bfloat16, are written as ml_dtypes makes
 * NumPy write them: `np.load(file).view(ml_dtypes.bfloat16)` reads them. The view must stay open, and its elements the
 * same, until the promise settles. If writing fails, the file is incomplete.
 *
 * @throws {SystemError} if the file cannot be written
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
  path: string | URL,
  view: StridedMemoryView,
  options: WriteNpyOptions = {},
): Promise<void> {
  checkOptions(options, writeNpyOptionNames);
  checkProgress(options.onProgress);
  const start = headerFor(view);
  using _ = view.buffer.pinned(); // first: that of a closed view is an error, before a file is replaced
  using file = createFile(path);
  await writeArray(file, view, start, options.onProgress);
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
      "StridedMemoryView.fromTypedArray() and fromArray() make one",
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
    const from = offset + layout.sliceOffsetInBytes;
    return buffer.bytes().subarray(from, from + nbytes);
  }
  const copy = new Uint8Array(nbytes);
  await readElements(part satisfies ArrayParts, copy);
  return copy;
}

/** Why a file cannot be created at a path. */
function missingFolder(path: string | URL): string {
  const hint = missingFile(path);
  return hint === "There is no such file" ? "Its folder does not exist: make it first" : hint;
}

// law files/checkNotMapped: files/open_npy
/** Refuses to truncate a file that this process has mapped: its views, perhaps those to be written, would end there. */
function checkNotMapped(path: string | URL): void {
  const fs = nodeBuiltin("node:fs");
  let mapped = "";
  let marks: string[] = [];
  try {
    const { dev, ino } = fs.statSync(path, { bigint: true });
    const device = [dev >> 8n & 0xfffn | dev >> 32n & ~0xfffn, dev & 0xffn | dev >> 12n & ~0xffn];
    // The list has one name of each file, with newlines escaped, and other numbers for some file systems.
    marks = [
      ` ${device.map((part) => part.toString(16).padStart(2, "0")).join(":")} ${ino} `,
      ` ${fs.realpathSync(path)}\n`,
    ];
    mapped = fs.readFileSync("/proc/self/maps", "utf8");
  } catch {
    return; // there is no such file, or Deno may not look
  }
  if (!marks.some((mark) => mapped.includes(mark))) return;
  throw new NpyError(`Cannot write ${path}: a view of it is open (openNpy). Close that first, or write another file`);
}

/** Creates a file, or truncates an existing one. */
export function createFile(
  path: string | URL,
): ByteSink & Disposable & { writeAt(bytes: Uint8Array, at: number): void } {
  const fs = nodeBuiltin("node:fs");
  checkPath("write", path);
  checkNotMapped(path);
  const file = namingErrors(`write ${path}`, () => fs.openSync(path, "w"), () => missingFolder(path));
  const once = (bytes: Uint8Array) =>
    new Promise<number>((resolve, reject) => {
      fs.write(file, bytes, 0, bytes.length, null, (error, written) => {
        if (error === null) resolve(written);
        else reject(systemErrorOf(`write ${path}`, error));
      });
    });
  return {
    write: async (bytes) => {
      for (let done = 0; done < bytes.length;) done += await once(bytes.subarray(done));
    },
    writeAt: (bytes, at) => void namingErrors(`write ${path}`, () => fs.writeSync(file, bytes, 0, bytes.length, at)),
    [Symbol.dispose]: () => fs.closeSync(file),
  };
}
