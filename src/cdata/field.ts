/**
 * Makes fields, compares them, and describes how they differ.
 *
 * @module
 */
import { checkBoolean, checkOptions, type OptionNames, showGiven } from "../layout/mod.ts";
import { ExchangeError } from "../order/mod.ts";
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
 * @throws {ExchangeError} if it is neither such a format, nor a type that Arrow has
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
  checkBoolean("nullable", nullable);
  return {
    name,
    type: typeof type === "string" ? parseArrowFormat(type, []) : checkType(type),
    nullable,
    metadata: metadata instanceof Map ? metadata : new Map(Object.entries(metadata)),
  };
}

/** A field of lists, each of which has `size` elements: a further axis of numbers. */
export function fieldOfLists(size: number, child: ArrowField): ArrowField {
  const type = { kind: "fixed_size_list", size, child: { ...child, name: "item" } } as const;
  return { name: "", type, nullable: false, metadata: new Map() };
}

/** Checks a type, which an untyped program may have made: it must be what its own format denotes. */
function checkType(type: ArrowType): ArrowType {
  if (typeof type !== "object" || type === null) {
    throw new ExchangeError(
      `Cannot make an Arrow field of ${showGiven(type)}: expected a type, such as { kind: "int", bits: 32 }, or its ` +
        'format, such as "i"',
    );
  }
  const fields: unknown = type.kind === "dictionary" ? [type.values] : childrenOf(type);
  if (!Array.isArray(fields) || !fields.every(isField)) {
    throw new ExchangeError(
      `Cannot make an Arrow field of ${type.kind}: expected fields inside it. arrowField(type, { name }) makes one`,
    );
  }
  for (const field of fields) checkType(field.type);
  for (const [name, value] of Object.entries(denotedBy(type, fields))) {
    const given: unknown = Reflect.get(type, name);
    if (given === value) continue;
    throw new ExchangeError(
      `Cannot make an Arrow field of ${type.kind}: expected its ${name} to be a ${typeof value}, got ${
        showGiven(given)
      }`,
    );
  }
  return type;
}

/** The properties that a type must have, by its format. */
function denotedBy(type: ArrowType, fields: readonly ArrowField[]): object {
  if (type.kind !== "dictionary") {
    return parseArrowFormat(formatOf(type), fields, type.kind === "map" && type.keysSorted === true);
  }
  const { kind } = checkType(type.index);
  if (kind === "int" || kind === "uint") return { ordered: type.ordered === true };
  throw new ExchangeError(`Cannot make an Arrow field of a dictionary with indices of ${kind}: expected integers`);
}

/** Whether a value is a field, as far as its own properties tell. */
export function isField(field: unknown): field is ArrowField {
  return typeof field === "object" && field !== null && "type" in field && "name" in field &&
    typeof field.name === "string" && "nullable" in field && typeof field.nullable === "boolean" &&
    "metadata" in field && field.metadata instanceof Map;
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
