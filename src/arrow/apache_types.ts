/**
 * Conversion of types from and to those of the npm package `apache-arrow`.
 *
 * @module
 */
import type { ArrowField, ArrowMetadata, ArrowTimeUnit, ArrowType } from "../cdata/mod.ts";
import { ExchangeError } from "../order/mod.ts";

/**
 * The package `apache-arrow` (version 17 or newer), as imported by `import * as arrow from "apache-arrow"`. It is
 * passed in rather than imported, so that other programs do not need it.
 */
export interface ApacheArrow<Vector = unknown> {
  /** Makes a vector from chunks. */
  readonly Vector: new (data: never) => Vector;
  /** Makes a chunk. */
  readonly makeData: (props: never) => unknown;
}

/** A type in the package, with the properties of all types and those of some. */
export interface ApacheType {
  /** The number of the type. */
  readonly typeId: number;
  /** Fields of nested types. */
  readonly children?: readonly ApacheField[] | null;
  /** Of integers. */
  readonly isSigned?: boolean;
  /** Of integers and decimals. */
  readonly bitWidth?: number;
  /** Of floats: 0 is half, 1 single, 2 double. Of decimals: digits. */
  readonly precision?: number;
  /** Of decimals. */
  readonly scale?: number;
  /** Of times, timestamps, durations, dates and intervals, numbered from the largest. */
  readonly unit?: number;
  /** Of timestamps. */
  readonly timezone?: string | null;
  /** Of fixed-size binary elements. */
  readonly byteWidth?: number;
  /** Of fixed-size lists. */
  readonly listSize?: number;
  /** Of maps. */
  readonly keysSorted?: boolean;
  /** Of dictionaries: the type of the indices. */
  readonly indices?: ApacheType;
  /** Of dictionaries: the type of the values. */
  readonly dictionary?: ApacheType;
  /** Of dictionaries. */
  readonly isOrdered?: boolean;
}

/** A field in the package. */
export interface ApacheField {
  /** May be empty. */
  readonly name: string;
  /** The type of the elements. */
  readonly type: ApacheType;
  /** Whether elements may be null. */
  readonly nullable: boolean;
  /** Key-value pairs. */
  readonly metadata: ReadonlyMap<string, string>;
}

/** The package's type numbers. */
const typeIds = {
  Dictionary: -1,
  Null: 1,
  Int: 2,
  Float: 3,
  Binary: 4,
  Utf8: 5,
  Bool: 6,
  Decimal: 7,
  Date: 8,
  Time: 9,
  Timestamp: 10,
  Interval: 11,
  List: 12,
  Struct: 13,
  FixedSizeBinary: 15,
  FixedSizeList: 16,
  Map: 17,
  Duration: 18,
  LargeBinary: 19,
  LargeUtf8: 20,
  LargeList: 21,
  BinaryView: 23,
  Utf8View: 24,
} as const;

const units: readonly ArrowTimeUnit[] = ["second", "millisecond", "microsecond", "nanosecond"];
const intervals = ["months", "days_milliseconds", "months_days_nanoseconds"] as const;

/**
 * Converts a field of the package.
 *
 * @throws {ExchangeError} if the C data interface has no such type, or Causeway does not support it
 */
function fieldFromApache({ name, type, nullable, metadata }: ApacheField): ArrowField {
  return { name, type: typeFromApache(type), nullable, metadata: new Map(metadata) };
}

/** Converts a type of the package. */
export function typeFromApache(type: ApacheType): ArrowType {
  const fields = (type.children ?? []).map(fieldFromApache);
  const [child] = fields;
  switch (type.typeId) {
    case typeIds.Null:
      return { kind: "null" };
    case typeIds.Bool:
      return { kind: "bool" };
    case typeIds.Int:
      return { kind: type.isSigned === true ? "int" : "uint", bits: oneOf([8, 16, 32, 64], type.bitWidth) };
    case typeIds.Float:
      return { kind: "float", bits: oneOf([16, 32, 64], 16 << (type.precision ?? 0)) };
    case typeIds.Decimal:
      return {
        kind: "decimal",
        bits: oneOf([32, 64, 128, 256], type.bitWidth),
        precision: type.precision ?? 0,
        scale: type.scale ?? 0,
      };
    case typeIds.Utf8:
      return { kind: "utf8", offsets: 32 };
    case typeIds.LargeUtf8:
      return { kind: "utf8", offsets: 64 };
    case typeIds.Utf8View:
      return { kind: "utf8", offsets: "view" };
    case typeIds.Binary:
      return { kind: "binary", offsets: 32 };
    case typeIds.LargeBinary:
      return { kind: "binary", offsets: 64 };
    case typeIds.BinaryView:
      return { kind: "binary", offsets: "view" };
    case typeIds.FixedSizeBinary:
      return { kind: "fixed_size_binary", width: type.byteWidth ?? 0 };
    case typeIds.Date:
      return { kind: "date", unit: type.unit === 0 ? "day" : "millisecond" };
    case typeIds.Time:
      return { kind: "time", unit: unitOf(type) };
    case typeIds.Duration:
      return { kind: "duration", unit: unitOf(type) };
    case typeIds.Timestamp:
      return { kind: "timestamp", unit: unitOf(type), timezone: type.timezone ?? "" };
    case typeIds.Interval:
      return { kind: "interval", unit: intervals[type.unit ?? 0] ?? "months" };
    case typeIds.Struct:
      return { kind: "struct", children: fields };
  }
  if (type.typeId === typeIds.Dictionary && type.indices !== undefined && type.dictionary !== undefined) {
    const index = typeFromApache(type.indices);
    if (index.kind === "int" || index.kind === "uint") {
      const values: ArrowField = {
        name: "",
        type: typeFromApache(type.dictionary),
        nullable: true,
        metadata: new Map(),
      };
      return { kind: "dictionary", index, values, ordered: type.isOrdered === true };
    }
  }
  if (child !== undefined) {
    if (type.typeId === typeIds.List) return { kind: "list", offsets: 32, child };
    if (type.typeId === typeIds.LargeList) return { kind: "list", offsets: 64, child };
    if (type.typeId === typeIds.FixedSizeList) return { kind: "fixed_size_list", size: type.listSize ?? 0, child };
    if (type.typeId === typeIds.Map) return { kind: "map", keysSorted: type.keysSorted === true, child };
  }
  throw new ExchangeError(`Cannot take a vector of ${String(type)} from apache-arrow: expected a type without unions`);
}

function oneOf<const T extends number>(allowed: readonly T[], value: number | undefined): T {
  const found = allowed.find((one) => one === value);
  if (found !== undefined) return found;
  throw new ExchangeError(`Cannot take ${value} bits from apache-arrow: expected ${allowed.join(", ")}`);
}

function unitOf({ unit }: ApacheType): ArrowTimeUnit {
  return units[unit ?? 0] ?? "second";
}

/** Makes an instance of the package's class of this name. */
export function make(arrow: ApacheArrow<unknown>, name: string, ...args: readonly unknown[]): unknown {
  const constructor: unknown = Reflect.get(arrow, name);
  if (typeof constructor === "function") return Reflect.construct(constructor, args);
  throw new ExchangeError(`Cannot make a vector of apache-arrow: this version has no ${name}. Expected a newer one.`);
}

/** Converts a field to one of the package. Metadata that is not text is dropped: the package cannot express it. */
function fieldToApache(arrow: ApacheArrow<unknown>, field: ArrowField): unknown {
  const type = typeToApache(arrow, field.type);
  return make(arrow, "Field", field.name, type, field.nullable, textsOf(field.metadata));
}

function textsOf(metadata: ArrowMetadata): Map<string, string> {
  const texts = new Map<string, string>();
  for (const [key, value] of metadata) if (typeof value === "string") texts.set(key, value);
  return texts;
}

/** Converts a type to one of the package. */
export function typeToApache(arrow: ApacheArrow<unknown>, type: ArrowType): unknown {
  const unit = "unit" in type ? `${type.unit[0]?.toUpperCase()}${type.unit.slice(1)}` : "";
  switch (type.kind) {
    case "null":
      return make(arrow, "Null");
    case "bool":
      return make(arrow, "Bool");
    case "int":
    case "uint":
      return make(arrow, `${type.kind === "int" ? "Int" : "Uint"}${type.bits}`);
    case "float":
      return make(arrow, `Float${type.bits}`);
    case "decimal":
      return make(arrow, "Decimal", type.scale, type.precision, type.bits);
    case "utf8":
    case "binary": {
      const base = type.kind === "utf8" ? "Utf8" : "Binary";
      return make(arrow, type.offsets === "view" ? `${base}View` : type.offsets === 64 ? `Large${base}` : base);
    }
    case "fixed_size_binary":
      return make(arrow, "FixedSizeBinary", type.width);
    case "date":
      return make(arrow, type.unit === "day" ? "DateDay" : "DateMillisecond");
    case "time":
      return make(arrow, `Time${unit}`);
    case "duration":
      return make(arrow, `Duration${unit}`);
    case "timestamp":
      return make(arrow, `Timestamp${unit}`, type.timezone === "" ? null : type.timezone);
    case "interval": {
      const names = {
        months: "IntervalYearMonth",
        days_milliseconds: "IntervalDayTime",
        months_days_nanoseconds: "IntervalMonthDayNano",
      };
      return make(arrow, names[type.unit]);
    }
    case "list":
      return make(arrow, type.offsets === 64 ? "LargeList" : "List", fieldToApache(arrow, type.child));
    case "list_view":
      return make(arrow, type.offsets === 64 ? "LargeListView" : "ListView", fieldToApache(arrow, type.child));
    case "fixed_size_list":
      return make(arrow, "FixedSizeList", type.size, fieldToApache(arrow, type.child));
    case "struct":
      return make(arrow, "Struct", type.children.map((child) => fieldToApache(arrow, child)));
    case "map":
      return make(arrow, "Map_", fieldToApache(arrow, type.child), type.keysSorted);
    case "run_end_encoded":
      throw new ExchangeError(
        "Cannot pass a run-end encoded array to apache-arrow, which has no such type: decode it first",
      );
    case "dictionary": {
      if (type.index.bits === 64) {
        throw new ExchangeError(
          `Cannot pass a dictionary with indices of ${type.index.kind}64 to apache-arrow, which cannot look up values ` +
            "by them: cast the indices to 32 bits",
        );
      }
      const [values, index] = [typeToApache(arrow, type.values.type), typeToApache(arrow, type.index)];
      return make(arrow, "Dictionary", values, index, null, type.ordered);
    }
  }
}
