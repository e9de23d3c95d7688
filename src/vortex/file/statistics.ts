/**
 * Statistics of whole columns, from the end of a file.
 *
 * @module
 */
import type { VortexDType } from "../dtype.ts";
import { VortexError } from "../error.ts";
import type { VortexLimits } from "../limits.ts";
import { isFloat } from "../ptype.ts";
import { FlatTable } from "../wire/flatbuffer.ts";
import { readScalar, type VortexScalar } from "../wire/scalar.ts";
import type { Bytes } from "../wire/source.ts";
import type { ColumnValue } from "./literal.ts";
import type { ColumnBounds } from "./prune.ts";

/** What a file says about a column. What it does not say is missing. */
export interface VortexColumnStatistics extends ColumnBounds {
  /** Uncompressed size of the column in bytes. */
  readonly uncompressedBytes?: number | undefined;
}

// law vortex/fileStatistics: vortex/file/files
/** Statistics of each root field, or of the one column of a file whose root is not a struct. */
export function fileStatistics(
  bytes: Bytes,
  dtype: VortexDType,
  rows: number,
  limits: VortexLimits,
): readonly VortexColumnStatistics[] {
  const columns = dtype.kind === "struct" ? dtype.fields : [dtype];
  const tables = FlatTable.root(bytes, "statistics", "statistics", limits.nodes).tables(0);
  if (tables.length !== columns.length) {
    throw new VortexError("statistics", `Statistics cover ${tables.length} columns, expected ${columns.length}`);
  }
  return columns.map((column, i) => {
    const table = tables[i];
    if (table === undefined) return { rows };
    const bound = (slot: number): ColumnValue | undefined => {
      const value = table.bytes(slot);
      if (value === null) return undefined;
      return asColumnValue(readScalar(value, column, "statistics"), column);
    };
    const count = (slot: number): number | undefined => table.has(slot) ? table.u64(slot) : undefined;
    return {
      rows,
      min: bound(0),
      max: bound(2),
      nullCount: count(8),
      uncompressedBytes: count(9),
      nanCount: count(10),
    };
  });
}

/** A scalar in the form that filters compare; undefined for a null and for values without an order. */
function asColumnValue(scalar: VortexScalar, dtype: VortexDType): ColumnValue | undefined {
  if (scalar === null || typeof scalar === "boolean") return scalar ?? undefined;
  if (scalar instanceof Uint8Array) return scalar;
  if (typeof scalar !== "bigint") return undefined;
  const of = dtype.kind === "extension" ? dtype.storage : dtype;
  if (of.kind !== "primitive" || !isFloat(of.ptype)) return scalar;
  if (of.ptype === "f64") return new Float64Array(BigUint64Array.of(scalar).buffer)[0];
  if (of.ptype === "f32") return new Float32Array(Uint32Array.of(Number(scalar)).buffer)[0];
  return undefined; // half floats
}
