/**
 * Makes fields, compares them, and describes how they differ.
 *
 * @module
 */
import { checkOptions, type OptionNames } from "../layout/mod.ts";
import { formatOf, parseArrowFormat } from "./format.ts";
import { type ArrowField, type ArrowMetadata, type ArrowType, childrenOf } from "./type.ts";

/** Options of {@linkcode arrowField}. */
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
 * Makes a field.
 *
 * @param type a type, or the format of one without children, as in the C data interface: `"i"`, `"tsu:UTC"`
 * @throws {ExchangeError} if it is not such a format
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

// law cdata/equalTypes: arrow/stream, python/arrow_capsules
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

/** Describes the first difference between two unequal types: `the formats u and n at names.first`. */
export function differenceOf(one: ArrowType, other: ArrowType, path: readonly string[] = []): string {
  const at = path.length === 0 ? "" : ` at ${path.join(".")}`;
  if (formatOf(one) !== formatOf(other)) return `the formats ${formatOf(one)} and ${formatOf(other)}${at}`;
  const partsOf = (type: ArrowType) => type.kind === "dictionary" ? [type.values] : childrenOf(type);
  const [ours, theirs] = [partsOf(one), partsOf(other)];
  if (one.kind !== other.kind) return `indices and values${at}`;
  if (ours.length !== theirs.length) return `${ours.length} and ${theirs.length} fields${at}`;
  for (const [i, { name, type, nullable, metadata }] of ours.entries()) {
    const theirField = theirs[i];
    if (theirField === undefined) continue; // the counts are equal
    const inner = [...path, name || "*"]; // the elements of a list have no name
    if (name !== theirField.name) return `fields named ${JSON.stringify([name, theirField.name])}${at}`;
    if (!equalTypes(type, theirField.type)) return differenceOf(type, theirField.type, inner);
    if (nullable !== theirField.nullable) return `one that may be null and one that may not at ${inner.join(".")}`;
    if (!equalMetadata(metadata, theirField.metadata)) return `other metadata at ${inner.join(".")}`;
  }
  return `ordered and unordered${at}`;
}

// law cdata/equalMetadata: arrow/stream, python/arrow_capsules
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
