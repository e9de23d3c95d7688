import type { Scalar, ScalarCodec } from "./element.ts";
import { checkMade, showAs } from "./inspect.ts";
import type { DTypeLike, DTypeName, DTypeNameOf, DTypeNameOfArray, ElementOf, WritableOf } from "./dtype_names.ts";
import { type DTypeSpec, specFromDLPack, specFromString } from "./dtype_spec.ts";
import {
  dlpackCode,
  SCALAR_TYPES,
  type ScalarType,
  type TypedArray,
  type TypedArrayConstructor,
  typedArrayFor,
} from "./scalar_types.ts";
import { falseFor, show, showGiven } from "./show.ts";

/** A data type as in DLPack: DLDataType, and the tensor's flag for padded sub-byte types. */
export interface DLPackDType {
  /** DLDataTypeCode. */
  readonly code: number;
  /** Bits of one lane. */
  readonly bits: number;
  /** Lanes of one element. */
  readonly lanes: number;
  /**
   * Whether each element of a sub-byte type is padded to a byte (DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED). Default:
   * false, as in DLPack: elements are packed bit by bit. Irrelevant for types of whole bytes.
   */
  readonly padded?: boolean;
}

/** The value of an element in JavaScript: a scalar, or an array of them for a dtype with lanes. */
export type ElementValue = Scalar | readonly Scalar[];

/** Other conventions in which a dtype may have a name. */
export type DTypeForm = "typestr" | "arrowFormat" | "typedArray";

/**
 * Cached dtypes, by name and by every string requested. Only those of few lanes, so that a peer cannot make the cache
 * grow without bound.
 */
const known: Map<string, DType> = new Map();

/** Cached dtypes of DLPack types, by a key of their parts. */
const knownDLPack: Map<number, DType> = new Map();

/** Cached dtypes of typed arrays, by class name. */
const knownArrays: Map<string | undefined, DType> = new Map();

/** The element types of typed arrays, by class name. */
const typeNames: ReadonlyMap<string | undefined, string> = new Map([
  ["Int8Array", "int8"],
  ["Uint8Array", "uint8"],
  ["Uint8ClampedArray", "uint8"],
  ["Int16Array", "int16"],
  ["Uint16Array", "uint16"],
  ["Int32Array", "int32"],
  ["Uint32Array", "uint32"],
  ["BigInt64Array", "int64"],
  ["BigUint64Array", "uint64"],
  ["Float16Array", "float16"],
  ["Float32Array", "float32"],
  ["Float64Array", "float64"],
]);

/** The class name of a typed array, regardless of what a subclass claims; undefined for anything else. */
const classNameOf: (value: unknown) => string | undefined = makeClassNameOf();

function makeClassNameOf(): (value: unknown) => string | undefined {
  const tag = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);
  const get: unknown = tag?.get; // the built-in getter, which checks the object itself
  return (value) => typeof get === "function" ? get.call(value) : undefined;
}

/** Dtypes with more lanes are not cached. */
const MAX_LANES_KNOWN = 16;

/** Tells the constructor that the call comes from this file, where the combination was checked. */
const CHECKED: unique symbol = Symbol("checked");

/**
 * The element type of an array: the scalar type, how many scalars make an element, and how they are stored.
 *
 * Sub-byte types are stored in one of three ways:
 *
 * | stored | example | bytes per element |
 * |---|---|---|
 * | padded, one element per byte, in its low bits (NumPy, ml_dtypes) | `float4_e2m1fn` | 1 |
 * | packed with lanes, an element of whole bytes (torch's `float4_e2m1fn_x2`) | `float4_e2m1fnx2` | 1 |
 * | packed without lanes, elements follow each other bit by bit (DLPack's default) | `float4_e2m1fn_packed` | 0.5 |
 *
 * Dtypes are values: compare them with {@linkcode DType.equals}.
 *
 * @example
 * ```ts
 * import { DType } from "@causeway/causeway/layout";
 *
 * DType.from("<f4").name; // "float32"
 * DType.from("bfloat16").dlpack; // { code: 4, bits: 16, lanes: 1, padded: false }
 * DType.from({ code: 17, bits: 4, lanes: 2 }).name; // "float4_e2m1fnx2"
 * DType.from("float4_e2m1fn_packed").itemsize; // 0.5
 *
 * const view = new DataView(new ArrayBuffer(2));
 * DType.from("float16").write(view, 0, 0.1);
 * DType.from("float16").read(view, 0); // 0.0999755859375
 * ```
 */
export class DType<Name extends DTypeName = DTypeName> {
  /** Type, `x` and the lanes if there are several, `_packed` for packed sub-byte elements: `float32x4`. */
  readonly name: Name;
  /** Bits of one lane that carry its value. */
  readonly bits: number;
  /** Scalars per element. */
  readonly lanes: number;
  /** Bytes per element; below 1, in eighths, if sub-byte elements are packed without lanes. */
  readonly itemsize: number;
  /** Whether sub-byte elements are packed, without padding and without lanes. */
  readonly isPacked: boolean;
  /** The type in DLPack. */
  readonly dlpack: Required<DLPackDType>;
  /** NumPy's type string, as in the (CUDA) array interface: `<f4`; null if it has none. */
  readonly typestr: string | null;
  /** The format of the Arrow C data interface: `f`; null if it has none. Arrow's booleans are `bool1_packed`. */
  readonly arrowFormat: string | null;
  /**
   * The class of typed array that reads the same memory; null if there is none. Complex numbers are two of its
   * elements, lanes several, and a boolean is the byte 0 or 1.
   */
  readonly typedArray: TypedArrayConstructor | null;
  readonly #scalar: ScalarType;
  #codec: ScalarCodec | null = null;

  /** Use {@linkcode DType.from}. */
  constructor(checked: typeof CHECKED, spec: DTypeSpec) {
    checkMade(checked === CHECKED ? spec : undefined, "DType", 'DType.from("float32")');
    const { scalar, lanes, isPacked } = spec;
    const isPlain = lanes === 1 && !isPacked;
    // Names are composed as in `DTypeName`; tests/layout/dtype_names_test.ts compares the two.
    this.name = `${scalar.name}${lanes === 1 ? "" : `x${lanes}`}${isPacked ? "_packed" : ""}` as Name;
    this.bits = scalar.bits;
    this.lanes = lanes;
    this.isPacked = isPacked;
    this.itemsize = isPacked ? scalar.bits / 8 : Math.ceil((scalar.bits * lanes) / 8);
    this.dlpack = { code: scalar.code, bits: scalar.bits, lanes, padded: scalar.bits < 8 && isPlain };
    this.typestr = isPlain ? scalar.typestr : null;
    this.arrowFormat = isPlain ? scalar.arrowFormat : this.name === "bool1_packed" ? "b" : null;
    this.typedArray = typedArrayFor(scalar.name);
    this.#scalar = scalar;
  }

  /**
   * Bytes of which addresses of elements are multiples where typed arrays and kernels read them: the size of one lane,
   * and of one part of a complex number; as NumPy's `dtype.alignment`.
   */
  get alignment(): number {
    return Math.max(1, this.bits / (this.dlpack.code === dlpackCode.complex ? 16 : 8));
  }

  /**
   * The dtype that a name, a NumPy type string, an Arrow format or a DLPack type denotes.
   *
   * @param source `"float32"`, `"<f4"`, `"f"` (single letters are Arrow's), or `{ code, bits, lanes }`
   * @throws {TypeError} if it is none of these, or is unsupported: big-endian, objects, text, times, structures
   */
  static from<const T extends DTypeLike>(source: T): DType<DTypeNameOf<T>>;
  /** A DLPack type, a string of another convention, or a string known only at run time. */
  static from(source: string | DType | DLPackDType): DType;
  static from(source: string | DType | DLPackDType): DType {
    if (typeof source === "string") {
      const before = known.get(source);
      if (before !== undefined) return before;
      const dtype = make(specFromString(source));
      if (dtype.lanes <= MAX_LANES_KNOWN) known.set(source, dtype);
      return dtype;
    }
    if (source instanceof DType) return source;
    if (typeof source !== "object" || source === null) {
      throw new TypeError(`Expected a dtype as a string or { code, bits, lanes }, got ${show(source)}`);
    }
    const { code, bits, lanes, padded = false } = source;
    if (code === undefined) throw noCode(source);
    const areNumbers = typeof code === "number" && typeof bits === "number" && typeof lanes === "number";
    if (!areNumbers || typeof padded !== "boolean") specFromDLPack(code, bits, lanes, padded); // throws
    return DType.fromParts(code, bits, lanes, padded);
  }

  /**
   * As {@linkcode DType.from}, from the separate parts of a DLPack type: an import allocates as few objects as it can.
   *
   * @internal
   */
  static fromParts(code: number, bits: number, lanes: number, padded: boolean): DType {
    const key = ((code & 0xff) + (bits & 0xff) * 0x100 + (lanes & 0xffff) * 0x1_0000) * 2 + (padded ? 1 : 0);
    const before = knownDLPack.get(key);
    // The parts are compared, too: anything but an integer in range has the key of another dtype.
    if (before?.dlpack.code === code && before.bits === bits && before.lanes === lanes) return before;
    const dtype = make(specFromDLPack(code, bits, lanes, padded));
    if (dtype.lanes <= MAX_LANES_KNOWN) knownDLPack.set(key, dtype);
    return dtype;
  }

  /**
   * The dtype of the elements of a typed array.
   *
   * @throws {TypeError} if it is not a typed array
   */
  static fromTypedArray<A extends TypedArray>(array: A): DType<DTypeNameOfArray<A>>;
  static fromTypedArray(array: TypedArray): DType {
    const className = classNameOf(array);
    const before = knownArrays.get(className);
    if (before !== undefined) return before;
    const name = typeNames.get(className);
    if (name === undefined) throw new TypeError(`Expected a typed array, got ${show(array)}`);
    const dtype = DType.from(name);
    knownArrays.set(className, dtype);
    return dtype;
  }

  /** Every dtype of one lane, sub-byte types padded and packed. */
  static all(): DType[] {
    return SCALAR_TYPES.flatMap((scalar) => {
      const plain = make({ scalar, lanes: 1, isPacked: false });
      return scalar.bits < 8 ? [plain, make({ scalar, lanes: 1, isPacked: true })] : [plain];
    });
  }

  /**
   * The name of this dtype in another convention.
   *
   * @throws {TypeError} if the convention has no name for it; the message says what to do instead; for an unknown
   *   convention
   */
  require<Form extends DTypeForm>(form: Form): NonNullable<DType[Form]> {
    if (form !== "typestr" && form !== "arrowFormat" && form !== "typedArray") throw noForm(form);
    const value = this[form];
    if (value === null) throw cannotSay(this, form);
    return value;
  }

  /**
   * Reads one element from host memory.
   *
   * @param view the memory
   * @param byteOffset where the element begins: the element's offset times the itemsize, so a fraction if packed
   * @returns bigint for 64-bit integers, `{ re, im }` for complex numbers, boolean, otherwise number; an array if there
   *   are lanes
   * @throws {RangeError} if no element can begin at the offset, or the element does not lie inside the view
   * @throws {TypeError} for memory of another type
   */
  read(view: DataView, byteOffset: number): ElementOf<Name> {
    checkPlace(this, view, byteOffset);
    return this.#read(view, byteOffset) as ElementOf<Name>; // the codec of the dtype with that name
  }

  #read(view: DataView, byteOffset: number): ElementValue {
    const codec = this.#codec ??= this.#scalar.makeCodec();
    if (this.lanes === 1) return codec.read(view, byteOffset);
    const size = this.bits / 8;
    return Array.from({ length: this.lanes }, (_, lane) => codec.read(view, byteOffset + lane * size));
  }

  /**
   * Writes one element to host memory, rounding to the nearest number, ties to even. A padded sub-byte element clears
   * the unused bits of its byte, a packed one leaves its neighbours unchanged.
   *
   * @param view the memory
   * @param byteOffset as for {@linkcode DType.read}
   * @param value of the type that `read` returns; safe integers are accepted for bigints
   * @throws {TypeError} if the value is of another type
   * @throws {RangeError} if an integer is out of range, NaN has no code, or the element does not lie inside the view
   */
  write(view: DataView, byteOffset: number, value: WritableOf<Name> | ElementOf<Name>): void {
    checkPlace(this, view, byteOffset);
    const codec = this.#codec ??= this.#scalar.makeCodec();
    if (this.lanes === 1) {
      if (isLanes(value)) throw new TypeError(`Expected one value for ${this.name}, got ${show(value)}`);
      if (this.bits < 8 && !this.isPacked) {
        // The element has a whole byte, in which no old bits may remain.
        scratch.setUint8(0, 0);
        codec.write(scratch, 0, value);
        view.setUint8(byteOffset, scratch.getUint8(0));
      } else codec.write(view, byteOffset, value);
      return;
    }
    if (!isLanes(value) || value.length !== this.lanes) {
      throw new TypeError(`Expected an array of ${this.lanes} values for ${this.name}, got ${show(value)}`);
    }
    // Written to a copy first, so that a lane that cannot be written leaves the element unchanged.
    const element = new DataView(new ArrayBuffer(this.itemsize));
    value.forEach((lane, index) => codec.write(element, (index * this.bits) / 8, lane));
    for (let byte = 0; byte < this.itemsize; byte++) view.setUint8(byteOffset + byte, element.getUint8(byte));
  }

  /**
   * Whether the other is the same dtype, stored in the same way.
   *
   * @throws {TypeError} for a dtype of another copy of this package
   */
  equals(other: unknown): boolean {
    if (other instanceof DType) return this === other || this.name === other.name;
    return falseFor(other, "DType.from(it.name)");
  }

  /** The name. */
  toString(): string {
    return this.name;
  }

  static {
    showAs(DType, String, "fields");
  }
}

const scratch = new DataView(new ArrayBuffer(1));

function isLanes(value: ElementValue): value is readonly Scalar[] {
  return Array.isArray(value);
}

function checkPlace(dtype: DType, view: DataView, byteOffset: number): void {
  if (!(view instanceof DataView)) {
    throw new TypeError(`Expected the memory of an element as a DataView, got ${showGiven(view)}`);
  }
  const unit = dtype.isPacked ? 8 : 1;
  if (!(Number.isInteger(byteOffset * unit) && byteOffset >= 0)) {
    throw new RangeError(
      `Expected the byte offset of an element of ${dtype.name} to be ${
        dtype.isPacked ? "a non-negative multiple of 1/8" : "a non-negative integer"
      }, got ${show(byteOffset)}`,
    );
  }
  if (byteOffset + dtype.itemsize > view.byteLength) {
    throw new RangeError(
      `Expected an element of ${dtype.name} inside the view of ${view.byteLength} bytes, got byte offset ${byteOffset}`,
    );
  }
}

function make(spec: DTypeSpec): DType {
  const dtype = new DType(CHECKED, spec);
  if (dtype.lanes > MAX_LANES_KNOWN) return dtype;
  const before = known.get(dtype.name);
  if (before !== undefined) return before;
  known.set(dtype.name, dtype);
  return dtype;
}

// law layout/noCode: layout/cloned
/**
 * The error for an object that is not a DLPack type: a dtype that went through `postMessage` or JSON still has its
 * name.
 */
function noCode(source: object): TypeError {
  const way = "name" in source && typeof source.name === "string"
    ? `. A copy of a DType is not one: use DType.from(${show(source.name)})`
    : "";
  return new TypeError(`Expected a dtype as a string or { code, bits, lanes }, got ${show(source)}${way}`);
}

function noForm(form: unknown): TypeError {
  return new TypeError(`Expected "typestr", "arrowFormat" or "typedArray", got ${showGiven(form)}`);
}

function cannotSay(dtype: DType, form: DTypeForm): TypeError {
  const { name } = dtype;
  const codes = `the codes as ${codesOf(dtype)}`;
  // the only one of these types that can be converted
  const instead = name === "bfloat16" ? "Convert to float32, or" : "Instead";
  switch (form) {
    case "typestr":
      return new TypeError(
        `Cannot name ${name} in the array interface: NumPy has no type string for it. Exchange it by DLPack, or ` +
          codes,
      );
    case "arrowFormat":
      return new TypeError(
        name === "bool"
          ? "Cannot name bool in Arrow: its booleans are bits. Write them as bool1_packed, or exchange the bytes " +
            "as uint8"
          : `Cannot name ${name} in Arrow: Arrow has no format for it. ${instead} exchange ${codes}`,
      );
    case "typedArray":
      return new TypeError(`Cannot make a typed array of ${name}: JavaScript has none. ${instead} take ${codes}`);
  }
}

/** The unsigned integer type with the same bytes as the element, or, if none is that large, as a part of it. */
function codesOf({ itemsize, bits }: DType): string {
  const size = 8 * Math.ceil(itemsize);
  if ([8, 16, 32, 64].includes(size)) return `uint${size}`;
  return `uint${[64, 32, 16].find((part) => bits % part === 0) ?? 8}, several of them for each element`;
}
