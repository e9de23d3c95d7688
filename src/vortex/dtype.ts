/**
 * Vortex's dtypes as values: the type of an array's elements, however they are encoded.
 *
 * @module
 */
import type { PType } from "./ptype.ts";

/** The type of an array's elements. */
export type VortexDType =
  | { readonly kind: "null"; readonly nullable: true }
  | { readonly kind: "bool" | "utf8" | "binary" | "variant"; readonly nullable: boolean }
  | { readonly kind: "primitive"; readonly ptype: PType; readonly nullable: boolean }
  | { readonly kind: "decimal"; readonly precision: number; readonly scale: number; readonly nullable: boolean }
  | {
    readonly kind: "struct";
    /** Names may repeat, and may be empty. */
    readonly names: readonly string[];
    readonly fields: readonly VortexDType[];
    readonly nullable: boolean;
  }
  | { readonly kind: "list"; readonly element: VortexDType; readonly nullable: boolean }
  | {
    readonly kind: "fixedSizeList";
    readonly element: VortexDType;
    readonly size: number;
    readonly nullable: boolean;
  }
  | {
    readonly kind: "map";
    readonly key: VortexDType;
    readonly value: VortexDType;
    readonly keysSorted: boolean;
    readonly nullable: boolean;
  }
  | {
    readonly kind: "union";
    readonly names: readonly string[];
    readonly variants: readonly VortexDType[];
    readonly typeIds: readonly number[];
    readonly nullable: boolean;
  }
  | {
    readonly kind: "extension";
    /** The extension's name: `vortex.timestamp`. */
    readonly id: string;
    /** The dtype of the stored values. An extension is nullable if its storage is. */
    readonly storage: VortexDType;
    /** The extension's own description of the type; only code that knows the extension can read it. */
    readonly metadata: Uint8Array<ArrayBuffer>;
    readonly nullable: boolean;
  };

/** A dtype of one kind. */
export type DTypeOf<Kind extends VortexDType["kind"]> = VortexDType & { readonly kind: Kind };

/** Non-nullable booleans: the dtype of validity. */
export const boolDType: DTypeOf<"bool"> = Object.freeze({ kind: "bool", nullable: false });

/** The dtype of numbers of a ptype. */
export function primitiveDType(ptype: PType, nullable = false): DTypeOf<"primitive"> {
  return { kind: "primitive", ptype, nullable };
}

/** Bytes that hold any decimal of a given precision. */
export function decimalWidth(precision: number): 4 | 8 | 16 | 32 {
  return precision <= 9 ? 4 : precision <= 18 ? 8 : precision <= 38 ? 16 : 32;
}

/** The entries of a map: non-nullable structs of key and value. */
export function entriesOf({ key, value }: DTypeOf<"map">): DTypeOf<"struct"> {
  return { kind: "struct", names: ["key", "value"], fields: [key, value], nullable: false };
}

/** The same dtype with other nullability. A null dtype is always nullable. */
export function withNullable(dtype: VortexDType, nullable: boolean): VortexDType {
  if (dtype.nullable === nullable || dtype.kind === "null") return dtype;
  if (dtype.kind === "extension") return { ...dtype, storage: withNullable(dtype.storage, nullable), nullable };
  return { ...dtype, nullable };
}

// law vortex/equalDTypes: vortex/core/bridge
/** Whether two dtypes are equal, including names, nullability and metadata. */
export function equalDTypes(one: VortexDType, other: VortexDType): boolean {
  if (one === other) return true;
  if (one.kind !== other.kind || one.nullable !== other.nullable) return false;
  switch (one.kind) {
    case "primitive":
      return other.kind === "primitive" && one.ptype === other.ptype;
    case "decimal":
      return other.kind === "decimal" && one.precision === other.precision && one.scale === other.scale;
    case "struct":
      return other.kind === "struct" && equalAll(one.fields, other.fields, equalDTypes) &&
        equalAll(one.names, other.names, Object.is);
    case "list":
      return other.kind === "list" && equalDTypes(one.element, other.element);
    case "fixedSizeList":
      return other.kind === "fixedSizeList" && one.size === other.size && equalDTypes(one.element, other.element);
    case "map":
      return other.kind === "map" && one.keysSorted === other.keysSorted && equalDTypes(one.key, other.key) &&
        equalDTypes(one.value, other.value);
    case "union":
      return other.kind === "union" && equalAll(one.variants, other.variants, equalDTypes) &&
        equalAll(one.names, other.names, Object.is) && equalAll(one.typeIds, other.typeIds, Object.is);
    case "extension":
      return other.kind === "extension" && one.id === other.id && equalDTypes(one.storage, other.storage) &&
        equalAll(one.metadata, other.metadata, Object.is);
    default:
      return true;
  }
}

function equalAll<T>(
  one: ArrayLike<T>,
  other: ArrayLike<T>,
  equal: (one: T, other: T) => boolean,
): boolean {
  if (one.length !== other.length) return false;
  return Array.from(one).every((value, i) => {
    const counterpart = other[i];
    return counterpart !== undefined && equal(value, counterpart);
  });
}

/** A dtype as Vortex prints it: `{id=u64, name=utf8?}`. */
export function showDType(dtype: VortexDType): string {
  const mark = dtype.nullable && dtype.kind !== "null" && dtype.kind !== "extension" ? "?" : "";
  switch (dtype.kind) {
    case "primitive":
      return dtype.ptype + mark;
    case "decimal":
      return `decimal(${dtype.precision},${dtype.scale})${mark}`;
    case "struct":
      return `{${dtype.fields.map((field, i) => `${dtype.names[i]}=${showDType(field)}`).join(", ")}}${mark}`;
    case "list":
      return `list(${showDType(dtype.element)})${mark}`;
    case "fixedSizeList":
      return `fixed_size_list(${showDType(dtype.element)})[${dtype.size}]${mark}`;
    case "map":
      return `map(${showDType(dtype.key)}, ${showDType(dtype.value)}${dtype.keysSorted ? ", sorted" : ""})${mark}`;
    case "union":
      return `union(${dtype.variants.map((one, i) => `${dtype.names[i]}=${showDType(one)}`).join(", ")})${mark}`;
    case "extension":
      return `${dtype.id}(${dtype.metadata.length === 0 ? "" : `${hexOf(dtype.metadata)}, `}${
        showDType(dtype.storage)
      })`;
    default:
      return dtype.kind + mark;
  }
}

/** At most 32 bytes, as two hex digits each. */
function hexOf(bytes: Uint8Array): string {
  return `${bytes.subarray(0, 32).toHex()}${bytes.length > 32 ? "..." : ""}`;
}
