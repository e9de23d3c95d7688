/**
 * Decoded arrays: one form for each kind of dtype, near to Arrow's.
 *
 * @module
 */
import { type DTypeOf, showDType, type VortexDType } from "./dtype.ts";
import type { PrimitiveValues } from "./ptype.ts";
import type { Bytes } from "./wire/source.ts";

/** What all decoded arrays have. */
export interface DecodedArray {
  /** What the elements are. */
  readonly dtype: VortexDType;
  /** Elements. */
  readonly length: number;
  /**
   * A bit for each element from bit 0 of byte 0 on, lowest first: 1 where it is not null. Null: no element is null.
   * Bits behind the last are arbitrary.
   */
  readonly validity: Bytes | null;
}

/** Nothing but nulls. */
export interface NullArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "null";
}

/** Truth values, a bit for each. */
export interface BoolArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "bool";
  /** Lowest bit of each byte first. */
  readonly bits: Bytes;
  /** Bits before the first element. */
  readonly offset: number;
}

/** Numbers. */
export interface PrimitiveArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "primitive";
  /** What the elements are. */
  readonly dtype: DTypeOf<"primitive">;
  /** As many as there are elements. Of f16 the bits. What a null has is arbitrary. */
  readonly values: PrimitiveValues;
}

/** Decimals: integers, to be multiplied by ten to the power of minus the dtype's scale. */
export interface DecimalArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "decimal";
  /** What the elements are. */
  readonly dtype: DTypeOf<"decimal">;
  /** Bytes of an integer: 1, 2, 4, 8, 16 or 32, which need not be what the precision suggests. */
  readonly width: number;
  /** The integers, with sign. */
  readonly bytes: Bytes;
}

/** Text or bytes, by a view of 16 bytes for each. */
export interface VarBinViewArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "varbinview";
  /**
   * `u32 size`, then up to 12 bytes of data padded with zeros; or of longer ones the first 4 bytes, `u32 buffer`,
   * `u32 offset`. What a null has is arbitrary, but never leads outside the data.
   */
  readonly views: Bytes;
  /** What the views lead to. */
  readonly data: readonly Bytes[];
}

/** Lists, and maps as lists of entries. */
export interface ListArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "list";
  /** Where each list begins in the elements, and where the last ends: not decreasing. */
  readonly offsets: Int32Array<ArrayBuffer>;
  /** The elements of all lists. */
  readonly elements: CanonicalArray;
}

/** Lists of one size. */
export interface FixedSizeListArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "fixedSizeList";
  /** Elements of a list. */
  readonly size: number;
  /** As many as there are lists, times the size. */
  /** The elements of all lists. */
  readonly elements: CanonicalArray;
}

/** Structs. Their fields keep nulls of their own, and have arbitrary values where the struct is null. */
export interface StructArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "struct";
  /** What the elements are. */
  readonly dtype: DTypeOf<"struct">;
  /** A column for each field. */
  readonly fields: readonly CanonicalArray[];
}

/** Values of an extension, as what they are stored as. */
export interface ExtensionArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "extension";
  /** What the elements are. */
  readonly dtype: DTypeOf<"extension">;
  /** With the same length, and the same nulls. */
  readonly storage: CanonicalArray;
}

/** Indices into a dictionary: made only where dictionaries are kept. */
export interface DictionaryArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "dictionary";
  /** Unsigned, each of a valid element smaller than the number of values. */
  readonly codes: PrimitiveArray;
  /** What the codes stand for. */
  readonly values: CanonicalArray;
}

/** Runs of one value: made only where they are kept. */
export interface RunEndArray extends DecodedArray {
  /** Which kind of array it is. */
  readonly kind: "runEnd";
  /** Where each run ends, counted from the first element: rising, the last is the length. */
  readonly ends: Int32Array<ArrayBuffer>;
  /** The value of each run, null for a run of nulls. `validity` says nothing. */
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

/** Where a dtype's values of numbers are asked for. @throws {TypeError} if the dtype is another one */
export function primitiveOf(dtype: VortexDType): DTypeOf<"primitive"> {
  if (dtype.kind === "primitive") return dtype;
  throw new TypeError(`Expected a primitive dtype, got ${showDType(dtype)}`);
}
