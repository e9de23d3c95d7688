/**
 * How a producer handles a requested schema. Nothing is converted: requested names are used, other types are left for
 * the consumer to convert, and a type without a conversion is refused.
 *
 * @module
 */
import { equalTypes } from "./field.ts";
import { type ArrowField, type ArrowType, childrenOf, indexOfName } from "./type.ts";
import { ExchangeError } from "../order/mod.ts";

// law cdata/applyRequestedSchema: arrow/release
/**
 * The field that an array is exported with.
 *
 * @param wanted the field that the consumer has requested, or null
 * @throws {ExchangeError} if the array's type cannot be converted to the requested one
 */
export function applyRequestedSchema(field: ArrowField, wanted: ArrowField | null): ArrowField {
  if (wanted === null) return field;
  if (equalTypes(field.type, wanted.type, false)) return renamed(field, wanted);
  const [ours, theirs] = clash(field.type, wanted.type) ?? [];
  if (ours === undefined || theirs === undefined) return field;
  throw new ExchangeError(
    `Cannot export an Arrow ${ours.kind} as the requested ${theirs.kind}: there is no conversion. ` +
      "Request the schema that the array has, or none.",
  );
}

// law cdata/renamed: arrow/release
/**
 * The requested names and metadata; nullability stays ours. The names of a struct's fields stay, too, because they
 * identify the columns: a field is matched with the requested field of the same name.
 */
function renamed(field: ArrowField, wanted: ArrowField): ArrowField {
  const { name, metadata } = wanted;
  const nullable = field.nullable;
  const theirs = childrenOf(wanted.type);
  const child = (one: ArrowField, i: number) => renamed(one, theirs[i] ?? one);
  const { type } = field;
  switch (type.kind) {
    case "list":
    case "list_view":
    case "fixed_size_list":
    case "map":
      return { name, metadata, nullable, type: { ...type, child: child(type.child, 0) } };
    case "struct":
      return {
        name,
        metadata,
        nullable,
        type: { ...type, children: type.children.map((one) => renamedLike(one, theirs)) },
      };
    case "dictionary": {
      const values = wanted.type.kind === "dictionary" ? renamed(type.values, wanted.type.values) : type.values;
      return { name, metadata, nullable, type: { ...type, values } };
    }
    default:
      return { name, metadata, nullable, type };
  }
}

/** A struct's field with the names and metadata requested for it, if there is one such request and the types agree. */
function renamedLike(field: ArrowField, wanted: readonly ArrowField[]): ArrowField {
  const found = wanted.filter(({ name }) => name === field.name);
  const [only] = found;
  return found.length === 1 && only !== undefined && equalTypes(field.type, only.type, false)
    ? renamed(field, only)
    : field;
}

/** Types of the same family can be converted to each other. */
const families: Readonly<Record<ArrowType["kind"], string>> = {
  null: "null",
  bool: "number",
  int: "number",
  uint: "number",
  float: "number",
  decimal: "number",
  utf8: "bytes",
  binary: "bytes",
  fixed_size_binary: "bytes",
  date: "time",
  time: "time of day",
  timestamp: "time",
  duration: "duration",
  interval: "interval",
  list: "list",
  list_view: "list",
  fixed_size_list: "list",
  map: "list",
  struct: "struct",
  dictionary: "dictionary",
  run_end_encoded: "run_end_encoded",
};

// law cdata/clash: arrow/release
/** The first pair of types that cannot be converted; undefined if there is none. */
function clash(ours: ArrowType, theirs: ArrowType): readonly [ArrowType, ArrowType] | undefined {
  if (ours.kind === "dictionary") return clash(ours.values.type, theirs);
  if (ours.kind === "run_end_encoded") return clash(ours.values.type, theirs);
  if (theirs.kind === "run_end_encoded") return clash(ours, theirs.values.type);
  if (theirs.kind === "dictionary") return clash(ours, theirs.values.type);
  if (ours.kind === "null") return undefined; // null is a value of every type
  const [mine, wanted] = [childrenOf(ours), childrenOf(theirs)];
  if (families[ours.kind] !== families[theirs.kind] || mine.length !== wanted.length) return [ours, theirs];
  const areNamed = ours.kind === "struct" && mine.every(({ name }) => indexOfName(wanted, name) >= 0);
  for (const [i, child] of mine.entries()) {
    const other = wanted[areNamed ? indexOfName(wanted, child.name) : i];
    const found = other === undefined ? undefined : clash(child.type, other.type);
    if (found !== undefined) return found;
  }
  return undefined;
}
