/**
 * Reads NumPy's file format into native memory: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 *
 * Written here, because the packages that do it read into JavaScript memory, guess at damaged files, and turn 64-bit
 * integers into numbers.
 *
 * @module
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { DType, StridedLayout } from "../layout/mod.ts";
import { HostMemoryResource, type MemoryBuffer } from "../memory/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";

/** A file cannot be read as an array. The message is one line. */
export class NpyError extends Error {
  override readonly name: string = "NpyError";
}

/** An array from a file. Closing the buffer frees it. */
export interface NpyArray {
  readonly view: StridedMemoryView;
  readonly buffer: MemoryBuffer;
  /** Where in the file the elements begin, in bytes. */
  readonly dataOffset: number;
}

/** NumPy writes a few hundred bytes; more than this is no header. */
const longestHeader = 65536;
/** The most that is read at once: some systems refuse more than 2 GiB. */
const chunk = 1 << 30;

/**
 * Reads an array from a `.npy` file.
 *
 * @throws {NpyError} if the file cannot be read, is damaged, or holds what cannot be exchanged: objects, text,
 *   structures, big-endian numbers
 */
export function readNpy(path: string): NpyArray {
  const file = open(path);
  try {
    return read(file);
  } catch (error) {
    if (!(error instanceof NpyError)) throw error;
    throw new NpyError(`Cannot read ${path}: ${error.message}`, { cause: error });
  } finally {
    closeSync(file);
  }
}

function read(file: number): NpyArray {
  const status = fstatSync(file);
  if (!status.isFile()) throw new NpyError("it is not a file");
  const { text, dataOffset } = readHeader(file, status.size);
  const layout = readLayout(text);
  const promised = layout.layout.requiredSizeInBytes();
  const present = status.size - dataOffset;
  if (present < promised) {
    throw new NpyError(`the file is truncated: its header promises ${promised} bytes of data, it has ${present}`);
  }
  const buffer = new HostMemoryResource().allocate(promised);
  try {
    fill(buffer.bytes(), file, dataOffset);
  } catch (error) {
    buffer.close();
    throw error;
  }
  const { shape, strides } = layout.layout;
  return { view: StridedMemoryView.fromBuffer(buffer, { shape, strides, dtype: layout.dtype }), buffer, dataOffset };
}

function open(path: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    throw new NpyError(`Cannot open ${path}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

/** Reads the array's description, which is the source text of a Python dictionary. */
function readHeader(file: number, size: number): { readonly text: string; readonly dataOffset: number } {
  const start = new Uint8Array(new ArrayBuffer(12));
  const got = readSync(file, start, 0, 12, 0);
  const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]; // \x93NUMPY
  if (got < 10 || magic.some((byte, i) => start[i] !== byte)) {
    throw new NpyError("it is no .npy file: it does not begin with \\x93NUMPY");
  }
  const fields = new DataView(start.buffer);
  const major = fields.getUint8(6);
  if (major < 1 || major > 3) throw new NpyError(`version ${major} of the .npy format is unknown: expected 1, 2 or 3`);
  const headerAt = major === 1 ? 10 : 12;
  const length = major === 1 ? fields.getUint16(8, true) : fields.getUint32(8, true);
  if (length > longestHeader) {
    throw new NpyError(`its header claims ${length} bytes: expected at most ${longestHeader}`);
  }
  const dataOffset = headerAt + length;
  if (dataOffset > size) {
    throw new NpyError(`the file is truncated: its header alone ends at byte ${dataOffset}, the file at ${size}`);
  }
  const bytes = new Uint8Array(new ArrayBuffer(length));
  fill(bytes, file, headerAt);
  return { text: new TextDecoder(major === 3 ? "utf-8" : "latin1").decode(bytes), dataOffset };
}

function fill(into: Uint8Array, file: number, position: number): void {
  for (let done = 0; done < into.length;) {
    const got = readSync(file, into, done, Math.min(chunk, into.length - done), position + done);
    if (got === 0) throw new NpyError(`the file ended ${into.length - done} bytes early: it shrank while it was read`);
    done += got;
  }
}

function readLayout(text: string): { readonly layout: StridedLayout; readonly dtype: DType } {
  const dictionary = /^\s*\{(?<entries>.*)\}\s*$/s.exec(text)?.groups?.["entries"];
  const descr = /(['"])descr\1\s*:\s*(?:(['"])(?<name>[^'"]*)\2|(?<structure>\[))/.exec(text)?.groups;
  const order = /(['"])fortran_order\1\s*:\s*(?<value>True|False)\s*[,}]/.exec(text)?.groups?.["value"];
  const shape = /(['"])shape\1\s*:\s*\((?<extents>[^)]*)\)/.exec(text)?.groups?.["extents"];
  if (dictionary === undefined || descr === undefined || order === undefined || shape === undefined) {
    throw new NpyError(`its header is not a dictionary of descr, fortran_order and shape: ${excerpt(text)}`);
  }
  if (descr["structure"] !== undefined) throw new NpyError("arrays of structures cannot be exchanged: take one field");
  const dtype = readDtype(descr["name"] ?? "");
  try {
    return { dtype, layout: StridedLayout.dense(readShape(shape), dtype.itemsize, order === "True" ? "F" : "C") };
  } catch (error) {
    if (error instanceof NpyError) throw error;
    throw new NpyError(`shape (${excerpt(shape)}) makes no sense: ${error instanceof Error ? error.message : error}`);
  }
}

function readShape(text: string): number[] {
  const items = text.split(",").map((item) => item.trim());
  if (items.at(-1) === "") items.pop(); // the comma of a tuple of one
  return items.map((item) => {
    if (!/^\d+L?$/.test(item)) throw new NpyError(`shape (${excerpt(text)}) makes no sense: expected whole numbers`);
    return Number.parseInt(item);
  });
}

function readDtype(name: string): DType {
  if (/^[<>=|]?[SUVMm]/.test(name)) {
    throw new NpyError(
      `elements of type "${excerpt(name)}" cannot be exchanged: text, times and raw bytes are no numbers`,
    );
  }
  try {
    return DType.from(name);
  } catch (error) {
    throw new NpyError(
      `elements of type "${excerpt(name)}" cannot be exchanged: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** The beginning of a text from outside, in printable characters. */
function excerpt(text: string): string {
  const clean = text.replace(/[^\x20-\x7e]/g, "?");
  return clean.length <= 60 ? clean : `${clean.slice(0, 57)}...`;
}
