/**
 * The extension types that every default session knows.
 *
 * @module
 */
import type { ArrowTimeUnit, ArrowType } from "../cdata/mod.ts";
import type { DTypeOf } from "./dtype.ts";
import type { VortexExtension } from "./session.ts";
import { textOf } from "./wire/source.ts";

const units: readonly ArrowTimeUnit[] = ["nanosecond", "microsecond", "millisecond", "second"];

const DAYS = 4;

function wrong({ id }: DTypeOf<"extension">, why: string): TypeError {
  return new TypeError(`Cannot read the metadata of ${id}: ${why}`);
}

/** Checks that the storage has the given ptype. */
function checkStorage(dtype: DTypeOf<"extension">, ptype: "i32" | "i64"): void {
  const { storage } = dtype;
  if (storage.kind === "primitive" && storage.ptype === ptype) return;
  throw wrong(dtype, `its values are stored as ${storage.kind}. Expected ${ptype}`);
}

function unitOf(dtype: DTypeOf<"extension">): ArrowTimeUnit {
  const code = dtype.metadata[0];
  const unit = code === undefined ? undefined : units[code];
  if (unit === undefined) throw wrong(dtype, `its unit is ${code}. Expected 0 to ${units.length - 1}`);
  return unit;
}

function timestamp(dtype: DTypeOf<"extension">): ArrowType {
  checkStorage(dtype, "i64");
  const { metadata } = dtype;
  const size = (metadata[1] ?? 0) + 256 * (metadata[2] ?? 0);
  if (metadata.length < 3 + size) throw wrong(dtype, `its time zone has ${size} bytes, more than available`);
  const timezone = textOf(metadata.subarray(3, 3 + size));
  if (timezone === null) throw wrong(dtype, "its time zone is not UTF-8");
  return { kind: "timestamp", unit: unitOf(dtype), timezone };
}

function date(dtype: DTypeOf<"extension">): ArrowType {
  const isDays = dtype.metadata[0] === DAYS;
  if (!isDays && unitOf(dtype) !== "millisecond") throw wrong(dtype, "its unit is neither days nor milliseconds");
  checkStorage(dtype, isDays ? "i32" : "i64");
  return { kind: "date", unit: isDays ? "day" : "millisecond" };
}

function time(dtype: DTypeOf<"extension">): ArrowType {
  const unit = unitOf(dtype);
  checkStorage(dtype, unit === "second" || unit === "millisecond" ? "i32" : "i64");
  return { kind: "time", unit };
}

function uuid(dtype: DTypeOf<"extension">): ArrowType {
  const { storage } = dtype;
  const isBytes = storage.kind === "fixedSizeList" && storage.size === 16 && storage.element.kind === "primitive" &&
    storage.element.ptype === "u8" && !storage.element.nullable;
  if (!isBytes) throw wrong(dtype, "its values are not stored as lists of 16 bytes");
  return { kind: "fixed_size_binary", width: 16 };
}

/** Dates, times, timestamps and UUIDs. */
export const defaultExtensions: readonly VortexExtension[] = [
  { id: "vortex.timestamp", toArrow: timestamp },
  { id: "vortex.date", toArrow: date },
  { id: "vortex.time", toArrow: time },
  { id: "vortex.uuid", toArrow: uuid, fieldMetadata: { "ARROW:extension:name": "arrow.uuid" } },
];
