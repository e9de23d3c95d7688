/**
 * Arrow's types as values: what the elements of an array are, and the fields of nested types.
 *
 * @module
 */
import { checkOptions, type OptionNames } from "../layout/mod.ts";
import { formatOf, parseArrowFormat } from "./format.ts";

/** Units of times, timestamps and durations. */
export type ArrowTimeUnit = "second" | "millisecond" | "microsecond" | "nanosecond";

/** How an array of text says where its elements lie: by offsets of so many bits, or by a view of each. */
export type ArrowOffsets = 32 | 64 | "view";

/** A type. Nested types have fields of their own. */
export type ArrowType =
  | { readonly kind: "null" | "bool" }
  | { readonly kind: "int" | "uint"; readonly bits: 8 | 16 | 32 | 64 }
  | { readonly kind: "float"; readonly bits: 16 | 32 | 64 }
  | { readonly kind: "decimal"; readonly bits: 32 | 64 | 128 | 256; readonly precision: number; readonly scale: number }
  | { readonly kind: "utf8" | "binary"; readonly offsets: ArrowOffsets }
  | { readonly kind: "fixed_size_binary"; readonly width: number }
  | { readonly kind: "date"; readonly unit: "day" | "millisecond" }
  | { readonly kind: "time" | "duration"; readonly unit: ArrowTimeUnit }
  | { readonly kind: "timestamp"; readonly unit: ArrowTimeUnit; readonly timezone: string }
  | { readonly kind: "interval"; readonly unit: "months" | "days_milliseconds" | "months_days_nanoseconds" }
  | { readonly kind: "list" | "list_view"; readonly offsets: 32 | 64; readonly child: ArrowField }
  | { readonly kind: "fixed_size_list"; readonly size: number; readonly child: ArrowField }
  | { readonly kind: "struct"; readonly children: readonly ArrowField[] }
  | { readonly kind: "map"; readonly keysSorted: boolean; readonly child: ArrowField }
  | {
    readonly kind: "dictionary";
    readonly index: ArrowType & { readonly kind: "int" | "uint" };
    readonly values: ArrowField;
    readonly ordered: boolean;
  };

/** Key-value pairs of a field: text where the bytes are UTF-8, bytes elsewhere. */
export type ArrowMetadata = ReadonlyMap<string, string | Uint8Array>;

/** A field: a type with a name. The schema of a table is a field of a struct. */
export interface ArrowField {
  /** Empty where nobody needs one. */
  readonly name: string;
  /** What the elements are. */
  readonly type: ArrowType;
  /** Whether elements may be null. */
  readonly nullable: boolean;
  /** Extension types say here what they are (`ARROW:extension:name`). */
  readonly metadata: ArrowMetadata;
}

/** What {@linkcode arrowField} does not need to be told. */
export interface ArrowFieldOptions {
  /** Default: empty. */
  readonly name?: string;
  /** Default: true. */
  readonly nullable?: boolean;
  /** Default: none. */
  readonly metadata?: ArrowMetadata | Readonly<Record<string, string | Uint8Array>>;
}

const arrowFieldOptionNames: OptionNames<ArrowFieldOptions> = { name: true, nullable: true, metadata: true };

/**
 * A field of a type.
 *
 * @param type a type, or the format of one without children, as the C data interface writes it: `"i"`, `"tsu:UTC"`
 * @throws {ExchangeError} if it is no such format
 *
 * @example
 * ```ts
 * import { arrowField } from "@causeway/causeway";
 * import { arrowFormat } from "@causeway/causeway/arrow";
 *
 * const id = arrowField("l", { name: "id", nullable: false });
 * const words = arrowField({ kind: "list", offsets: 32, child: arrowField("u") }, { name: "words" });
 * const table = arrowField({ kind: "struct", children: [id, words] });
 * console.log(arrowFormat(table.type), arrowFormat(words.type), arrowFormat(id.type)); // +s +l l
 * ```
 */
export function arrowField(type: ArrowType | string, options: ArrowFieldOptions = {}): ArrowField {
  checkOptions(options, arrowFieldOptionNames);
  const { name = "", nullable = true, metadata = new Map() } = options;
  return {
    name,
    type: typeof type === "string" ? parseArrowFormat(type, []) : type,
    nullable,
    metadata: metadata instanceof Map ? metadata : new Map(Object.entries(metadata)),
  };
}

/** The fields inside a type, in the order of its children. A dictionary's values are no child. */
export function childrenOf(type: ArrowType): readonly ArrowField[] {
  switch (type.kind) {
    case "list":
    case "list_view":
    case "fixed_size_list":
    case "map":
      return [type.child];
    case "struct":
      return type.children;
    default:
      return [];
  }
}

/** How the elements are stored: a dictionary's as its indices. */
export function storageOf(type: ArrowType): Exclude<ArrowType, { readonly kind: "dictionary" }> {
  return type.kind === "dictionary" ? type.index : type;
}

/** Whether two types are the same, with the names, nullability and metadata of their fields if `exactly`. */
export function equalTypes(one: ArrowType, other: ArrowType, exactly = true): boolean {
  if (formatOf(one) !== formatOf(other)) return false;
  if (one.kind === "dictionary" || other.kind === "dictionary") {
    return one.kind === "dictionary" && other.kind === "dictionary" && one.ordered === other.ordered &&
      equalFields(one.values, other.values, exactly);
  }
  if (one.kind === "map" && other.kind === "map" && one.keysSorted !== other.keysSorted) return false;
  const [ours, theirs] = [childrenOf(one), childrenOf(other)];
  return ours.length === theirs.length &&
    ours.every((field, i) => {
      const counterpart = theirs[i];
      return counterpart !== undefined && equalFields(field, counterpart, exactly);
    });
}

/** Whether two fields have equal types and, if `exactly`, the same names, nullability and metadata. */
export function equalFields(one: ArrowField, other: ArrowField, exactly = true): boolean {
  if (!equalTypes(one.type, other.type, exactly)) return false;
  return !exactly ||
    (one.name === other.name && one.nullable === other.nullable && equalMetadata(one.metadata, other.metadata));
}

/** How two types that are not equal differ, where they first do: `the formats u and n at names.first`. */
export function differenceOf(one: ArrowType, other: ArrowType, path: readonly string[] = []): string {
  const at = path.length === 0 ? "" : ` at ${path.join(".")}`;
  if (formatOf(one) !== formatOf(other)) return `the formats ${formatOf(one)} and ${formatOf(other)}${at}`;
  const partsOf = (type: ArrowType) => type.kind === "dictionary" ? [type.values] : childrenOf(type);
  const [ours, theirs] = [partsOf(one), partsOf(other)];
  if (one.kind !== other.kind) return `indices and values${at}`;
  if (ours.length !== theirs.length) return `${ours.length} and ${theirs.length} fields${at}`;
  for (const [i, { name, type, nullable, metadata }] of ours.entries()) {
    const theirField = theirs[i];
    if (theirField === undefined) continue; // there are as many
    const inner = [...path, name || "*"]; // the elements of a list have no name
    if (name !== theirField.name) return `fields named ${JSON.stringify([name, theirField.name])}${at}`;
    if (!equalTypes(type, theirField.type)) return differenceOf(type, theirField.type, inner);
    if (nullable !== theirField.nullable) return `one that may be null and one that may not at ${inner.join(".")}`;
    if (!equalMetadata(metadata, theirField.metadata)) return `other metadata at ${inner.join(".")}`;
  }
  return `ordered and unordered${at}`;
}

function equalMetadata(one: ArrowMetadata, other: ArrowMetadata): boolean {
  if (one.size !== other.size) return false;
  for (const [key, value] of one) {
    const theirs = other.get(key);
    if (theirs === undefined || plain(theirs) !== plain(value)) return false;
  }
  return true;
}

function plain(value: string | Uint8Array): string {
  return typeof value === "string" ? value : `bytes ${value.join()}`;
}
