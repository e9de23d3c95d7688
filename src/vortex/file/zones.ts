/**
 * Statistics of a column's zones: the structure of their table, and what it says about a zone.
 *
 * @module
 */
import { bitAt, isValid } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import { boolDType, type DTypeOf, primitiveDType, type VortexDType, withNullable } from "../dtype.ts";
import { isFloat, isSigned, isUnsigned } from "../ptype.ts";
import { ProtoMessage } from "../wire/protobuf.ts";
import type { Bytes } from "../wire/source.ts";
import type { Layout } from "./layout.ts";
import type { ColumnValue } from "./literal.ts";
import type { ColumnBounds } from "./prune.ts";
import { valueAt } from "./row_order.ts";

/** The statistic in a column of a zone table. */
type Statistic = "min" | "max" | "boundedMin" | "boundedMax" | "maxCut" | "minCut" | "nullCount" | "nanCount" | "other";

/** The zones of a column. */
export interface Zones {
  /** Rows of a zone, except for the last. */
  readonly length: number;
  /** The statistic in each column of the table. */
  readonly columns: readonly Statistic[];
  /** The table's dtype. */
  readonly dtype: DTypeOf<"struct">;
  readonly table: Layout;
}

/** What is known about a table before it is read. */
type ZonesHead = Omit<Zones, "table">;

const u64 = primitiveDType("u64", true);

interface Column {
  readonly name: string;
  readonly statistic: Statistic;
  readonly dtype: VortexDType;
}

function headOf(length: number, columns: readonly Column[]): ZonesHead | null {
  if (length === 0 || columns.length === 0) return null;
  return {
    length,
    columns: columns.map(({ statistic }) => statistic),
    dtype: {
      kind: "struct",
      names: columns.map(({ name }) => name),
      fields: columns.map(({ dtype }) => dtype),
      nullable: false,
    },
  };
}

/** Whether values have an order that zones use. */
function isOrdered({ kind }: VortexDType): boolean {
  return ["bool", "primitive", "decimal", "utf8", "binary", "extension"].includes(kind);
}

// law vortex/zonesOf: vortex/file/scan, vortex/file/judged
/** The zones of `vortex.zoned`; null if one of its aggregates is unknown, which leaves the table's dtype unknown. */
export function zonesOf(metadata: Bytes, dtype: VortexDType): ZonesHead | null {
  if (metadata[0] !== 1) return null; // of an unknown version
  const message = new ProtoMessage(metadata.subarray(1), "layout", "metadata of zones");
  const columns: Column[] = [];
  for (const spec of message.everyMessage(2)) {
    const id = spec.text(1) ?? "";
    const column = aggregateOf(id, dtype);
    if (column === undefined) return null;
    if (column !== null) columns.push({ ...column, name: id });
  }
  return headOf(message.u32(1), columns);
}

/** The column of an aggregate; null if it does not apply to the dtype, undefined if it is unknown. */
function aggregateOf(id: string, dtype: VortexDType): Omit<Column, "name"> | null | undefined {
  const own = withNullable(dtype, true);
  switch (id) {
    case "vortex.max":
      return isOrdered(dtype) ? { statistic: "max", dtype: own } : null;
    case "vortex.min":
      return isOrdered(dtype) ? { statistic: "min", dtype: own } : null;
    case "vortex.bounded_min":
      return isOrdered(dtype) ? { statistic: "boundedMin", dtype: own } : null;
    case "vortex.bounded_max":
      return isOrdered(dtype)
        ? {
          statistic: "boundedMax",
          dtype: { kind: "struct", names: ["bound", "unknown"], fields: [own, boolDType], nullable: true },
        }
        : null;
    case "vortex.null_count":
      return { statistic: "nullCount", dtype: u64 };
    case "vortex.nan_count":
      return dtype.kind === "primitive" && isFloat(dtype.ptype) ? { statistic: "nanCount", dtype: u64 } : null;
    case "vortex.sum": {
      const sum = sumOf(dtype);
      return sum === null ? null : { statistic: "other", dtype: sum };
    }
    default:
      return undefined;
  }
}

/** The dtype of sums; null if there are none. */
function sumOf(dtype: VortexDType): VortexDType | null {
  if (dtype.kind === "bool") return u64;
  if (dtype.kind === "decimal") return { ...dtype, precision: Math.min(76, dtype.precision + 10), nullable: true };
  if (dtype.kind !== "primitive") return null;
  return primitiveDType(isUnsigned(dtype.ptype) ? "u64" : isSigned(dtype.ptype) ? "i64" : "f64", true);
}

// law vortex/legacyZones: vortex/file/old_files
/** The zones of `vortex.stats`, of files up to the October 2025 edition: one bit per statistic. */
export function legacyZones(metadata: Bytes, dtype: VortexDType): ZonesHead | null {
  if (metadata.length < 4) return null;
  const length = new DataView(metadata.buffer, metadata.byteOffset, 4).getUint32(0, true);
  const own = withNullable(dtype, true);
  const bool = withNullable(boolDType, true);
  const columns: Column[] = [];
  const add = (name: string, statistic: Statistic, type: VortexDType) => columns.push({ name, statistic, dtype: type });
  for (let stat = 0; stat < 8 * (metadata.length - 4); stat++) {
    if (!bitAt(metadata.subarray(4), stat)) continue;
    switch (stat) {
      case 0:
        add("is_constant", "other", bool);
        break;
      case 1:
        add("is_sorted", "other", bool);
        break;
      case 2:
        add("is_strict_sorted", "other", bool);
        break;
      case 3:
        add("max", "max", own);
        add("max_is_truncated", "maxCut", boolDType);
        break;
      case 4:
        add("min", "min", own);
        add("min_is_truncated", "minCut", boolDType);
        break;
      case 5: { // for an extension, the sum of its storage, which today's zones do not have
        const sum = sumOf(dtype.kind === "extension" ? dtype.storage : dtype);
        if (sum !== null) add("sum", "other", sum);
        break;
      }
      case 6:
        add("null_count", "nullCount", u64);
        break;
      case 7:
        add("uncompressed_size_in_bytes", "other", u64);
        break;
      case 8:
        add("nan_count", "nanCount", u64);
        break;
      default:
        return null;
    }
  }
  return headOf(length, columns);
}

// law vortex/boundsOfZone: vortex/file/scan, vortex/file/judged
/** What a zone table says about one zone. */
export function boundsOfZone(
  { columns }: Pick<Zones, "columns">,
  table: CanonicalArray,
  zone: number,
  rows: number,
): ColumnBounds {
  let [min, max, nullCount, nanCount]: (ColumnValue | undefined)[] = [];
  if (table.kind !== "struct") return { rows };
  for (const [i, statistic] of columns.entries()) {
    const field = table.fields[i];
    if (field === undefined) continue;
    switch (statistic) {
      case "min":
      case "boundedMin":
        min = valueAt(field, zone);
        break;
      case "max":
        max = valueAt(field, zone);
        break;
      case "boundedMax": {
        if (field.kind !== "struct" || !isValid(field.validity, zone)) break;
        const [bound, unknown] = field.fields;
        if (bound !== undefined && unknown !== undefined && valueAt(unknown, zone) === false) {
          max = valueAt(bound, zone);
        }
        break;
      }
      case "nullCount":
        nullCount = valueAt(field, zone);
        break;
      case "nanCount":
        nanCount = valueAt(field, zone);
        break;
      case "maxCut": // a truncated bound still bounds: those of old files are rounded up
      case "minCut":
      case "other":
        break;
    }
  }
  return { rows, min, max, nullCount: countOf(nullCount), nanCount: countOf(nanCount) };
}

function countOf(value: ColumnValue | undefined): number | undefined {
  return typeof value === "bigint" || typeof value === "number" ? Number(value) : undefined;
}
