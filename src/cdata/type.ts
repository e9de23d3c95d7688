/**
 * Arrow's types as values: the element type of an array, and the fields of nested types.
 *
 * @module
 */

/** Units of times, timestamps and durations. */
export type ArrowTimeUnit = "second" | "millisecond" | "microsecond" | "nanosecond";

/** How an array of text locates its elements: by offsets of that many bits, or by a view of each. */
export type ArrowOffsets = 32 | 64 | "view";

/** A type. Nested types contain fields. */
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
  | { readonly kind: "run_end_encoded"; readonly runEnds: ArrowField; readonly values: ArrowField }
  | {
    readonly kind: "dictionary";
    readonly index: ArrowType & { readonly kind: "int" | "uint" };
    readonly values: ArrowField;
    readonly ordered: boolean;
  };

/** Key-value pairs of a field: text if the bytes are UTF-8, otherwise bytes. */
export type ArrowMetadata = ReadonlyMap<string, string | Uint8Array>;

/** A field: a type with a name. The schema of a table is a field of a struct. */
export interface ArrowField {
  /** May be empty. */
  readonly name: string;
  /** The type of the elements. */
  readonly type: ArrowType;
  /** Whether elements may be null. */
  readonly nullable: boolean;
  /** Extension types are identified here (`ARROW:extension:name`). */
  readonly metadata: ArrowMetadata;
}

/** The fields inside a type, in the order of its children. A dictionary's values are not a child. */
export function childrenOf(type: ArrowType): readonly ArrowField[] {
  switch (type.kind) {
    case "list":
    case "list_view":
    case "fixed_size_list":
    case "map":
      return [type.child];
    case "struct":
      return type.children;
    case "run_end_encoded":
      return [type.runEnds, type.values];
    default:
      return [];
  }
}

/** Fields of at least this number are found by a map: it takes longer to build than one search. */
const many = 32;

/** The indices of the fields of wide structs by name. */
const indices = new WeakMap<readonly ArrowField[], ReadonlyMap<string, number>>();

// law cdata/indexOfName: arrow/array
/** The index of the first field with a name; -1 if there is none. */
export function indexOfName(fields: readonly ArrowField[], name: string): number {
  if (fields.length < many) return fields.findIndex((field) => field.name === name);
  let known = indices.get(fields);
  if (known === undefined) {
    const entries = fields.map((field, i) => [field.name, i] as const);
    known = new Map(entries.reverse()); // of equal names the first stays
    indices.set(fields, known);
  }
  return known.get(name) ?? -1;
}

/** A type in one line: `int32`, `list<utf8>`, `struct<city: utf8, mean: float64>`. */
export function showType(type: ArrowType): string {
  switch (type.kind) {
    case "int":
    case "uint":
    case "float":
      return `${type.kind}${type.bits}`;
    case "decimal":
      return `decimal${type.bits}(${type.precision}, ${type.scale})`;
    case "fixed_size_binary":
      return `${type.kind}[${type.width}]`;
    case "date":
    case "time":
    case "duration":
    case "interval":
      return `${type.kind}[${type.unit}]`;
    case "timestamp":
      return `timestamp[${type.unit}${type.timezone === "" ? "" : `, ${type.timezone}`}]`;
    case "list":
    case "list_view":
    case "map":
      return `${type.kind}<${showType(type.child.type)}>`;
    case "fixed_size_list":
      return `${type.kind}<${showType(type.child.type)}>[${type.size}]`;
    case "struct":
      return `struct<${showFields(type.children)}>`;
    case "run_end_encoded":
      return `run_end_encoded<${showType(type.values.type)}>`;
    case "dictionary":
      return `dictionary<${showType(type.index)}, ${showType(type.values.type)}>`;
    default:
      return type.kind;
  }
}

/** Fields in one line, only the first if there are many. */
function showFields(fields: readonly ArrowField[]): string {
  const most = 8;
  const shown = fields.slice(0, most).map(({ name, type }) => `${name}: ${showType(type)}`);
  return [...shown, ...(fields.length > most ? [`${fields.length - most} more`] : [])].join(", ");
}

/** The type in which the elements are stored: for a dictionary, that of its indices. */
export function storageOf(type: ArrowType): Exclude<ArrowType, { readonly kind: "dictionary" }> {
  return type.kind === "dictionary" ? type.index : type;
}
