/**
 * Conversion of types from and to the format strings of the Arrow C data interface.
 *
 * @module
 */
import { type ArrowField, type ArrowTimeUnit, type ArrowType, storageOf } from "./type.ts";
import { show } from "../layout/mod.ts";
import { ExchangeError } from "../order/mod.ts";

/** Formats of types without parameters and children. */
const plain: ReadonlyMap<string, ArrowType> = new Map<string, ArrowType>([
  ["n", { kind: "null" }],
  ["b", { kind: "bool" }],
  ["c", { kind: "int", bits: 8 }],
  ["C", { kind: "uint", bits: 8 }],
  ["s", { kind: "int", bits: 16 }],
  ["S", { kind: "uint", bits: 16 }],
  ["i", { kind: "int", bits: 32 }],
  ["I", { kind: "uint", bits: 32 }],
  ["l", { kind: "int", bits: 64 }],
  ["L", { kind: "uint", bits: 64 }],
  ["e", { kind: "float", bits: 16 }],
  ["f", { kind: "float", bits: 32 }],
  ["g", { kind: "float", bits: 64 }],
  ["u", { kind: "utf8", offsets: 32 }],
  ["U", { kind: "utf8", offsets: 64 }],
  ["vu", { kind: "utf8", offsets: "view" }],
  ["z", { kind: "binary", offsets: 32 }],
  ["Z", { kind: "binary", offsets: 64 }],
  ["vz", { kind: "binary", offsets: "view" }],
  ["tdD", { kind: "date", unit: "day" }],
  ["tdm", { kind: "date", unit: "millisecond" }],
  ["tiM", { kind: "interval", unit: "months" }],
  ["tiD", { kind: "interval", unit: "days_milliseconds" }],
  ["tin", { kind: "interval", unit: "months_days_nanoseconds" }],
]);

const units: readonly (readonly [letter: string, unit: ArrowTimeUnit])[] = [
  ["s", "second"],
  ["m", "millisecond"],
  ["u", "microsecond"],
  ["n", "nanosecond"],
];

const listFormats: readonly (readonly [format: string, kind: "list" | "list_view", offsets: 32 | 64])[] = [
  ["+l", "list", 32],
  ["+L", "list", 64],
  ["+vl", "list_view", 32],
  ["+vL", "list_view", 64],
];

/** The format of a plain type, by its value. */
const plainFormats: ReadonlyMap<string, string> = new Map([...plain].map(([format, type]) => [keyOf(type), format]));

function keyOf(
  { kind, bits, offsets, unit }: ArrowType & Partial<Record<"bits" | "offsets" | "unit", unknown>>,
): string {
  return show([kind, bits, offsets, unit]); // of an untyped program's bigint, too
}

/**
 * Cached formats by type: types are immutable values, and mostly the same few. Looked up by `get`, as in ffi/struct.ts.
 */
const known = new WeakMap<ArrowType, string>();

/**
 * The format of a type in the C data interface; for a dictionary, that of its indices.
 *
 * @throws {ExchangeError} if Arrow has no such type
 */
export function formatOf(type: ArrowType): string {
  let format = known.get(type);
  if (format === undefined) known.set(type, format = nameFormat(type));
  return format;
}

function nameFormat(type: ArrowType): string {
  const stored = storageOf(type);
  switch (stored.kind) {
    case "decimal":
      return `d:${stored.precision},${stored.scale}${stored.bits === 128 ? "" : `,${stored.bits}`}`;
    case "fixed_size_binary":
      return `w:${stored.width}`;
    case "time":
      return `tt${letterOf(stored.unit)}`;
    case "duration":
      return `tD${letterOf(stored.unit)}`;
    case "timestamp":
      return `ts${letterOf(stored.unit)}:${stored.timezone}`;
    case "list":
    case "list_view":
      return listFormats.find(([, kind, offsets]) => kind === stored.kind && offsets === stored.offsets)?.[0] ??
        unknownType(stored);
    case "fixed_size_list":
      return `+w:${stored.size}`;
    case "struct":
      return "+s";
    case "map":
      return "+m";
    case "run_end_encoded":
      return "+r";
    default:
      return plainFormats.get(keyOf(stored)) ?? unknownType(stored);
  }
}

function letterOf(unit: ArrowTimeUnit): string {
  return units.find(([, name]) => name === unit)?.[0] ?? unknownType({ kind: "duration", unit });
}

/** A type as JSON; as in other errors if JSON cannot express what an untyped program has put into it: a bigint. */
function textOf(type: ArrowType): string {
  try {
    return JSON.stringify(type);
  } catch {
    return show(type);
  }
}

function unknownType(type: ArrowType): never {
  throw new ExchangeError(`Cannot name the Arrow type ${textOf(type)}: Arrow has no such type`);
}

/**
 * The type that a format denotes.
 *
 * @param children its fields; the required number depends on the format
 * @param keysSorted whether the keys of a map are sorted
 * @throws {ExchangeError} if there is no such format, or the number of children is wrong
 */
export function parseArrowFormat(
  format: string,
  children: readonly ArrowField[],
  keysSorted = false,
): ArrowType {
  const simple = plain.get(format) ?? parseParameters(format);
  if (simple !== undefined) return expectChildren(format, children, 0) && simple;
  const [child] = children;
  if (format === "+s") return { kind: "struct", children };
  const list = listFormats.find(([name]) => name === format);
  const size = /^\+w:(\d{1,16})$/.exec(format)?.[1];
  if (
    (list !== undefined || size !== undefined || format === "+m") && expectChildren(format, children, 1) && child
  ) {
    if (list !== undefined) return { kind: list[1], offsets: list[2], child };
    if (size !== undefined) return { kind: "fixed_size_list", size: wholeNumber(format, size), child };
    return { kind: "map", keysSorted, child: checkEntries(child) };
  }
  if (format === "+r") return runEndEncoded(format, children);
  if (/^\+(ud|us):/.test(format)) {
    throw new ExchangeError(
      `Cannot exchange Arrow format ${JSON.stringify(format)}: unions are not supported. Convert to a struct first.`,
    );
  }
  throw new ExchangeError(
    `Cannot exchange Arrow format ${JSON.stringify(format)}: expected a format of the C data interface, such as "i", ` +
      '"tsu:UTC" or "+l"',
  );
}

function parseParameters(format: string): ArrowType | undefined {
  const [, kind, letter = "", timezone] = /^(tt|tD|ts)([smun])(?::(.*))?$/s.exec(format) ?? [];
  const unit = units.find(([name]) => name === letter)?.[1];
  if (unit !== undefined) {
    if (kind === "ts") return timezone === undefined ? undefined : { kind: "timestamp", unit, timezone };
    return timezone === undefined ? { kind: kind === "tt" ? "time" : "duration", unit } : undefined;
  }
  const width = /^w:(\d{1,16})$/.exec(format)?.[1];
  if (width !== undefined) return { kind: "fixed_size_binary", width: wholeNumber(format, width) };
  const [, precision, scale, bits = "128"] = /^d:(\d{1,3}),(-?\d{1,4})(?:,(\d{1,3}))?$/.exec(format) ?? [];
  return precision === undefined ? undefined : decimal(format, Number(precision), Number(scale), Number(bits));
}

/** The number of digits that always fit a decimal, by its bits. */
const decimalDigits: ReadonlyMap<number, number> = new Map([[32, 9], [64, 18], [128, 38], [256, 76]]);

function decimal(format: string, precision: number, scale: number, bits: number): ArrowType {
  const digits = decimalDigits.get(bits);
  if (digits === undefined || precision < 1 || precision > digits) {
    throw new ExchangeError(
      `Cannot exchange Arrow format ${
        JSON.stringify(format)
      }: expected decimals of 32, 64, 128 or 256 bits with 1 to ` +
        `${digits ?? 76} digits`,
    );
  }
  return { kind: "decimal", bits: bits as 32 | 64 | 128 | 256, precision, scale }; // a key of decimalDigits
}

function wholeNumber(format: string, digits: string): number {
  const value = Number(digits);
  if (value > maxWidth) {
    throw new ExchangeError(`Cannot exchange Arrow format ${JSON.stringify(format)}: expected at most ${maxWidth}`);
  }
  return value;
}

/** The widest element that Arrow's own libraries can express. */
const maxWidth = 2 ** 31 - 1;

function checkEntries(child: ArrowField): ArrowField {
  if (child.type.kind === "struct" && child.type.children.length === 2) return child;
  throw new ExchangeError(
    `Cannot exchange an Arrow map of ${child.type.kind}: expected entries of a struct with a key and a value`,
  );
}

// law cdata/runEndEncoded: arrow/run_ends
function runEndEncoded(format: string, children: readonly ArrowField[]): ArrowType {
  expectChildren(format, children, 2);
  const [runEnds, values] = children;
  if (runEnds === undefined || values === undefined) throw new TypeError("There are two children"); // counted above
  if (runEnds.type.kind === "int" && runEnds.type.bits > 8) return { kind: "run_end_encoded", runEnds, values };
  throw new ExchangeError(
    `Cannot exchange run-end encoded Arrow arrays with ends of ${formatOf(runEnds.type)}: expected signed ` +
      "integers of 16, 32 or 64 bits",
  );
}

function expectChildren(format: string, children: readonly ArrowField[], count: number): true {
  if (children.length === count) return true;
  throw new ExchangeError(
    `Cannot exchange Arrow format ${JSON.stringify(format)} with ${children.length} children: expected ${count}`,
  );
}
