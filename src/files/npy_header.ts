/**
 * The header of a `.npy` file, which describes the array:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Nothing in it is evaluated or unpickled.
 *
 * @module
 */
import { DType, StridedLayout } from "../layout/mod.ts";
import { excerpt, NpyError } from "./error.ts";
import { type Literal, readDictionary } from "./python_literal.ts";

/** The contents of a header. */
export interface NpyHeader {
  readonly dtype: DType;
  /** In C or Fortran order, without gaps. */
  readonly layout: StridedLayout;
  /** Bytes per number if the byte order is not this machine's; 0 if it is. */
  readonly swapped: number;
}

/** `\x93NUMPY` */
const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/** Whether bytes begin like a `.npy` file. */
export function beginsAsNpy(bytes: Uint8Array): boolean {
  return magic.every((byte, i) => bytes[i] === byte);
}

/** NumPy writes a few hundred bytes; anything longer than this is not a header. */
const longestHeader = 65536;

/** Bytes of the prefix that states the header's length: 10 in version 1, this many in later versions. */
export const prefixBytes = 12;

/** Where the header's text lies in the file: from, to (where the elements begin), and its encoding. */
interface HeaderPlace {
  readonly from: number;
  readonly to: number;
  readonly encoding: "latin1" | "utf-8";
}

/**
 * Parses the first {@linkcode prefixBytes} bytes of a file.
 *
 * @param got how many were read: fewer if the file is shorter
 * @param size bytes of the file
 * @throws {NpyError} if this is not a `.npy` file, is of an unknown version, or has no header
 */
export function readPrefix(prefix: Uint8Array, got: number, size: number): HeaderPlace {
  if (got < 10 || !beginsAsNpy(prefix)) {
    const isZip = got >= 4 && prefix[0] === 0x50 && prefix[1] === 0x4b && prefix[2] === 3 && prefix[3] === 4;
    throw new NpyError(
      `it is not a .npy file: ${
        isZip ? "it is a zip file, as .npz is. Use readNpz" : "it does not begin with \\x93NUMPY"
      }`,
    );
  }
  const fields = new DataView(prefix.buffer, prefix.byteOffset, prefix.byteLength);
  const [major, minor] = [fields.getUint8(6), fields.getUint8(7)];
  if (major < 1 || major > 3 || minor !== 0) {
    throw new NpyError(`version ${major}.${minor} of the .npy format is unknown: expected 1.0, 2.0 or 3.0`);
  }
  const from = major === 1 ? 10 : 12;
  if (got < from) throw new NpyError("the file is truncated: it ends within its header");
  const length = major === 1 ? fields.getUint16(8, true) : fields.getUint32(8, true);
  if (length > longestHeader) {
    throw new NpyError(`its header claims ${length} bytes: expected at most ${longestHeader}`);
  }
  const to = from + length;
  if (to > size) throw new NpyError(`the file is truncated: its header alone ends at byte ${to}, the file at ${size}`);
  return { from, to, encoding: major === 3 ? "utf-8" : "latin1" };
}

/**
 * Parses a header's text.
 *
 * @param raw the type of elements for which NumPy states only their size in bytes
 * @throws {NpyError} if it is damaged, or does not describe an array of numbers
 */
export function readHeader(bytes: Uint8Array, encoding: HeaderPlace["encoding"], raw?: DType): NpyHeader {
  const text = new TextDecoder(encoding).decode(bytes);
  const entries = readDictionary(text);
  const names = ["descr", "fortran_order", "shape"];
  if (entries.size !== 3 || !names.every((name) => entries.has(name))) {
    throw new NpyError(`its header does not have exactly descr, fortran_order and shape: ${excerpt(text)}`);
  }
  const isFortran = entries.get("fortran_order");
  if (typeof isFortran !== "boolean") throw new NpyError("its fortran_order is neither True nor False");
  const { dtype, swapped } = readType(entries.get("descr"), raw);
  const shape = readShape(entries.get("shape"));
  try {
    return { dtype, swapped, layout: StridedLayout.dense(shape, dtype.itemsize, isFortran ? "F" : "C") };
  } catch (error) {
    throw new NpyError(`its shape is invalid: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * Bytes of the elements.
 *
 * @param present bytes of the file that follow the header
 * @throws {NpyError} if they are fewer
 */
export function elementBytes({ dtype, layout }: NpyHeader, present: number): number {
  const promised = layout.volume * dtype.itemsize;
  if (promised <= present) return promised;
  throw new NpyError(`the file is truncated: its header promises ${promised} bytes of data, it has ${present}`);
}

function readShape(shape: Literal | undefined): number[] {
  if (!Array.isArray(shape)) throw new NpyError("its shape is invalid: expected a tuple of whole numbers");
  return shape.map((extent: Literal) => {
    if (typeof extent === "number" && Number.isSafeInteger(extent) && extent >= 0) return extent;
    throw new NpyError("its shape is invalid: expected whole numbers of at least 0");
  });
}

/** Why elements of a kind cannot be read, by kind letter. */
const refused: { readonly [letter: string]: string } = {
  O: "they are Python objects, pickled: unpickling runs whatever code is in the file",
  S: "text is not a number",
  a: "text is not a number",
  U: "text is not a number",
  M: "times are not plain numbers. Save array.view('i8')",
  m: "time differences are not plain numbers. Save array.view('i8')",
};

/** The C compiler's long doubles: 80 bits on x86-64, other sizes elsewhere. */
const longDoubles: { readonly [type: string]: string } = {
  f16: "the format of longdouble depends on the machine. Save array.astype('f8')",
  f12: "the format of longdouble depends on the machine. Save array.astype('f8')",
  c32: "the format of clongdouble depends on the machine. Save array.astype('c16')",
  c24: "the format of clongdouble depends on the machine. Save array.astype('c16')",
};

/** How NumPy writes float8_e5m2, and the complex types of two halves, of ml_dtypes: it could not read them. */
const foreignTypes = /^[<=|]?(f1|W4)$/;

function readType(descr: Literal | undefined, raw: DType | undefined): Pick<NpyHeader, "dtype" | "swapped"> {
  if (descr === null) {
    throw new NpyError("its elements are structures with named fields. Save one field: array['field']");
  }
  if (typeof descr !== "string") throw new NpyError("its descr is neither a type string nor a list of fields");
  const [, order = "", letter = "", size = ""] = /^([<>=|]?)([a-zA-Z?])(\d*)/.exec(descr) ?? [];
  const no = (why: string) => new NpyError(`elements of type "${excerpt(descr)}" cannot be read: ${why}`);
  if (letter === "V" || foreignTypes.test(descr)) {
    if (raw === undefined) {
      throw no(
        "raw bytes, which is how NumPy writes bfloat16 and the other types of ml_dtypes. " +
          'Name the type: readNpy(file, { rawDtype: "bfloat16" })',
      );
    }
    if (!/^[<>=|]?[VfW]\d+$/.test(descr) || raw.itemsize !== Number(size)) {
      throw no(`rawDtype ${raw.name} has ${raw.itemsize} bytes`);
    }
    return { dtype: raw, swapped: 0 };
  }
  const why = refused[letter] ?? longDoubles[`${letter}${size}`];
  if (why !== undefined) throw no(why);
  // NumPy itself writes the order of more bytes than one, but reads what leaves it out, or gives one to a single byte.
  const code = letter === "?" ? `b1${size}` : descr.slice(order.length);
  const isSwapped = order === ">" && code !== "b1" && size !== "1"; // this machine is little-endian: others have no FFI
  try {
    const dtype = DType.from(`<${code}`);
    if (dtype.typestr?.slice(1) !== code) throw no("NumPy does not write this type");
    return { dtype, swapped: isSwapped ? dtype.itemsize / (letter === "c" ? 2 : 1) : 0 };
  } catch (error) {
    throw error instanceof NpyError ? error : no("expected numbers of at most 64 bits, or 128 if complex");
  }
}

/**
 * Makes everything that precedes the elements, as NumPy does: the elements begin at a multiple of 64 bytes.
 *
 * @throws {NpyError} for packed sub-byte elements, or elements with several lanes
 */
export function writeHeader(dtype: DType, shape: readonly number[], isFortran: boolean): Uint8Array {
  const { typestr, itemsize, lanes, isPacked, name } = dtype;
  if (lanes !== 1 || isPacked) {
    throw new NpyError(
      `Cannot write elements of type ${name}: expected elements of one number and of whole bytes, as NumPy has`,
    );
  }
  const descr = typestr ?? `<V${itemsize}`; // as NumPy writes ml_dtypes types, of which it knows only the size
  const extents = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${descr}', 'fortran_order': ${isFortran ? "True" : "False"}, 'shape': (${extents}), }`;
  const before = 10; // version 1: 64 axes take less than 1500 of the 65535 characters that it can hold
  const length = Math.ceil((before + text.length + 1) / 64) * 64 - before;
  const bytes = new Uint8Array(before + length).fill(0x20);
  bytes.set([...magic, 1, 0, length & 255, length >> 8]);
  bytes.set(new TextEncoder().encode(text), before);
  bytes[before + length - 1] = 0x0a;
  return bytes;
}
