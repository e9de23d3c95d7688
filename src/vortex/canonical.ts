/**
 * Decoded arrays: one canonical form per kind of dtype, close to Arrow's.
 *
 * @module
 */
import { type DTypeOf, showDType, type VortexDType } from "./dtype.ts";
import type { PrimitiveValues } from "./ptype.ts";
import type { Bytes } from "./wire/source.ts";

/** Properties that all decoded arrays have. */
export interface DecodedArray {
  /** Dtype of the elements. */
  readonly dtype: VortexDType;
  /** Number of elements. */
  readonly length: number;
  /**
   * One bit per element starting at bit 0 of byte 0, least significant first: 1 if the element is not null. Null means
   * that no element is null. Bits past the last element are arbitrary.
   */
  readonly validity: Bytes | null;
}

/** Nothing but nulls. */
export interface NullArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "null";
}

/** Booleans, one bit each. */
export interface BoolArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "bool";
  /** Least significant bit of each byte first. */
  readonly bits: Bytes;
  /** Bits before the first element. */
  readonly offset: number;
}

/** Numbers. */
export interface PrimitiveArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "primitive";
  /** Dtype of the elements. */
  readonly dtype: DTypeOf<"primitive">;
  /** One value per element; for f16, its bits. The value of a null is arbitrary. */
  readonly values: PrimitiveValues;
}

/** Decimals: integers to be multiplied by 10^-scale, with the scale of the dtype. */
export interface DecimalArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "decimal";
  /** Dtype of the elements. */
  readonly dtype: DTypeOf<"decimal">;
  /** Bytes per integer: 1, 2, 4, 8, 16 or 32, not necessarily what the precision suggests. */
  readonly width: number;
  /** The signed integers. */
  readonly bytes: Bytes;
}

/** The longest text that a view holds inline. */
export const INLINE_BYTES = 12;

/** The most bytes of a buffer that views point into: their offsets have 31 bits. */
export const MAX_BUFFER_BYTES = 2 ** 31 - 1;

/** Text or bytes, with a 16-byte view per element. */
export interface VarBinViewArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "varbinview";
  /**
   * `u32 size`, then up to 12 bytes of data padded with zeros; for longer values, the first 4 bytes, `u32 buffer`,
   * `u32 offset`. The view of a null is arbitrary, but never points outside the data.
   */
  readonly views: Bytes;
  /** The buffers that the views point into. */
  readonly data: readonly Bytes[];
}

/** Lists, and maps as lists of entries. */
export interface ListArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "list";
  /** Where each list starts in the elements, and where the last one ends: non-decreasing. */
  readonly offsets: Int32Array<ArrayBuffer>;
  /** The elements of all lists. */
  readonly elements: CanonicalArray;
}

/** Lists of one fixed size. */
export interface FixedSizeListArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "fixedSizeList";
  /** Number of elements per list. */
  readonly size: number;
  /** The elements of all lists: the number of lists times the size. */
  readonly elements: CanonicalArray;
}

/** Structs. Fields have their own nulls, and arbitrary values where the struct is null. */
export interface StructArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "struct";
  /** Dtype of the elements. */
  readonly dtype: DTypeOf<"struct">;
  /** One column per field. */
  readonly fields: readonly CanonicalArray[];
}

/** Values of an extension type, in their storage form. */
export interface ExtensionArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "extension";
  /** Dtype of the elements. */
  readonly dtype: DTypeOf<"extension">;
  /** The storage, with the same length and the same nulls. */
  readonly storage: CanonicalArray;
}

/** Indices into a dictionary: produced only where dictionaries are kept. */
export interface DictionaryArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "dictionary";
  /** Unsigned. The code of a valid element is less than the number of values. */
  readonly codes: PrimitiveArray;
  /** The values that the codes index. */
  readonly values: CanonicalArray;
}

/** Runs of one value: produced only where runs are kept. */
export interface RunEndArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "runEnd";
  /** Where each run ends, counted from the first element: increasing, the last is the length. */
  readonly ends: Int32Array<ArrayBuffer>;
  /** The value of each run, null for a run of nulls. `validity` carries no information. */
  readonly values: CanonicalArray;
}

/** A decoded array. */
export type CanonicalArray =
  | NullArray
  | BoolArray
  | PrimitiveArray
  | DecimalArray
  | VarBinViewArray
  | ListArray
  | FixedSizeListArray
  | StructArray
  | ExtensionArray
  | DictionaryArray
  | RunEndArray;

/** A decoded array of one kind. */
export type CanonicalOf<Kind extends CanonicalArray["kind"]> = CanonicalArray & { readonly kind: Kind };

/** Narrows a dtype to a primitive one. @throws {TypeError} if it is of another kind */
export function primitiveOf(dtype: VortexDType): DTypeOf<"primitive"> {
  if (dtype.kind === "primitive") return dtype;
  throw new TypeError(`Expected a primitive dtype, got ${showDType(dtype)}`);
}
