/** The meaning of dtype names in the various conventions. */
import { nearestOf } from "./nearest.ts";
import { checkBoolean } from "./options.ts";
import { SCALAR_TYPES, type ScalarType } from "./scalar_types.ts";
import { notInteger, show } from "./show.ts";

/** The parts that make up a dtype. */
export interface DTypeSpec {
  /** The type of one lane. */
  readonly scalar: ScalarType;
  /** Number of lanes. */
  readonly lanes: number;
  /** Whether sub-byte elements are packed bit by bit. */
  readonly isPacked: boolean;
}

/** The most lanes that DLPack's 16 bits can count. */
const MAX_LANES = 0xffff;

const byScalarName: ReadonlyMap<string, ScalarType> = new Map(SCALAR_TYPES.map((scalar) => [scalar.name, scalar]));

function firstWith(key: "typestr" | "arrowFormat", wanted: string): ScalarType | undefined {
  return SCALAR_TYPES.find((scalar) => scalar[key] === wanted);
}

/**
 * Reads the name of a dtype, a NumPy type string or an Arrow format.
 *
 * @throws {TypeError} if it is none of them, or one that Causeway does not support; the message says why
 */
export function specFromString(source: string): DTypeSpec {
  return fromName(source) ?? fromArrowFormat(source) ?? fromTypestr(source) ?? unknown(source);
}

function fromName(source: string): DTypeSpec | null {
  const isPacked = source.endsWith("_packed");
  const unpacked = isPacked ? source.slice(0, -"_packed".length) : source;
  // Try the whole name first: "complex64" is not "comple" of 64 lanes.
  let scalar = byScalarName.get(unpacked);
  let lanes = 1;
  if (scalar === undefined) {
    const [, stem = "", count = ""] = /^(.*)x([1-9]\d{0,4})$/.exec(unpacked) ?? [];
    scalar = byScalarName.get(stem);
    lanes = Number(count);
  }
  if (scalar === undefined) return null;
  if (lanes > MAX_LANES) throw new TypeError(`Expected at most ${MAX_LANES} lanes, got ${lanes} in ${show(source)}`);
  if (isPacked && (lanes !== 1 || scalar.bits >= 8)) {
    throw new TypeError(`Expected a packed dtype to be below one byte and have one lane, got ${show(source)}`);
  }
  return { scalar, lanes, isPacked };
}

function fromArrowFormat(source: string): DTypeSpec | null {
  const bits = byScalarName.get("bool1");
  if (source === "b" && bits !== undefined) return { scalar: bits, lanes: 1, isPacked: true };
  const scalar = firstWith("arrowFormat", source);
  return scalar === undefined ? null : { scalar, lanes: 1, isPacked: false };
}

function fromTypestr(source: string): DTypeSpec | null {
  const [, order, kind = "", size = ""] = /^([<>|=])([A-Za-z])(\d*)$/.exec(source) ?? [];
  if (order === undefined) return null;
  if (kind === "O") {
    throw new TypeError(`Cannot carry dtype ${show(source)}: its elements are Python objects, not values in memory`);
  }
  if (order === ">") {
    throw new TypeError(
      `Cannot carry dtype ${show(source)}: it is big-endian. Convert it to little-endian first, as with ` +
        `array.astype("<${kind}${size}")`,
    );
  }
  if (kind === "V") {
    throw new TypeError(
      `Cannot carry dtype ${show(source)}: raw bytes have no element type. Arrays of ml_dtypes have this type ` +
        'string too: exchange them by DLPack, or give the dtype by name, as in "bfloat16"',
    );
  }
  const isSingleByte = size === "1";
  // Byte order is meaningless for one byte, for which NumPy writes "|"; for more bytes "|" is meaningless.
  if (order === "|" && !isSingleByte) return null;
  const scalar = firstWith("typestr", `${isSingleByte ? "|" : "<"}${source.slice(1)}`);
  return scalar === undefined ? null : { scalar, lanes: 1, isPacked: false };
}

/** Type names of C, Java and others. */
const namesElsewhere: Readonly<Record<string, string>> = {
  float: "float32",
  single: "float32",
  double: "float64",
  half: "float16",
  byte: "uint8",
  short: "int16",
  int: "int32",
  long: "int64",
  boolean: "bool",
  // Rust, MLIR, WebAssembly. Their i8 is NumPy's i1, and NumPy's i8 their i64.
  bf16: "bfloat16",
  f16: "float16",
  f32: "float32",
  f64: "float64",
  i16: "int16",
  i32: "int32",
  i64: "int64",
  u16: "uint16",
  u32: "uint32",
  u64: "uint64",
};

// law layout/unknownDtype: layout/dtype_names
function unknown(source: string): never {
  // Of two equally near names, most programs mean the one of whole bytes.
  const names: readonly string[] = SCALAR_TYPES.toSorted((one, other) => Number(one.bits < 8) - Number(other.bits < 8))
    .map(({ name }) => name);
  const meant = meantBy(source, names);
  const alike = names.filter((name) => name.startsWith(`${source}_`)); // float8 has several
  throw new TypeError(
    `Expected a dtype such as "float32", "<f4" or the Arrow format "f", got ${show(source)}. ` +
      (meant === undefined ? `The names are ${names.join(", ")}` : `Did you mean "${meant}"?`) +
      (alike.length === 0 ? "" : ` Similar names are ${alike.join(", ")}`),
  );
}

/** The name probably meant: that of a type from elsewhere, of a type string without byte order, or of a misspelling. */
function meantBy(source: string, names: readonly string[]): string | undefined {
  const word = source.toLowerCase();
  if (Object.hasOwn(namesElsewhere, word)) return namesElsewhere[word];
  const ordered = [`<${source}`, `|${source}`].find((one) => SCALAR_TYPES.some(({ typestr }) => typestr === one));
  if (ordered !== undefined) return ordered;
  const { name, letters } = nearestOf(source, names);
  return letters <= 2 ? name : undefined;
}

/**
 * Reads a DLPack type.
 *
 * @throws {TypeError | RangeError} if DLPack 1.3 does not define the code, or not with that many bits
 */
export function specFromDLPack(code: number, bits: number, lanes: number, isPadded: boolean): DTypeSpec {
  checkBoolean("padded of a DLPack dtype", isPadded);
  for (const [name, value, max] of [["code", code, 0xff], ["bits", bits, 0xff], ["lanes", lanes, MAX_LANES]] as const) {
    if (!(Number.isInteger(value) && value >= 0 && value <= max)) {
      throw notInteger(`${name} of a DLPack dtype`, `an integer up to ${max}`, value);
    }
  }
  if (lanes === 0) throw new RangeError("Expected at least one lane in a DLPack dtype, got 0");
  const scalar = SCALAR_TYPES.find((type) => type.code === code && type.bits === bits);
  if (scalar === undefined) {
    const widths = SCALAR_TYPES.filter((type) => type.code === code).map((type) => type.bits);
    throw new TypeError(
      widths.length === 0
        ? `Expected a type code of DLPack 1.3 (0 to 17), got ${code}`
        : `Expected DLPack type code ${code} with ${widths.join(", ")} bits, got ${bits}`,
    );
  }
  if (bits >= 8) return { scalar, lanes, isPacked: false };
  if (lanes === 1) return { scalar, lanes, isPacked: !isPadded };
  if (isPadded) {
    throw new TypeError(`Expected padded ${scalar.name} elements to have one lane, got ${lanes}`);
  }
  return { scalar, lanes, isPacked: false };
}
