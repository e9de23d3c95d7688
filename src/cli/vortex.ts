/**
 * The contents of a Vortex file: its columns, how they are encoded, what the file says about them, and its first rows.
 *
 * @module
 */
import {
  layoutLines,
  openVortex,
  showDType,
  showEncodings,
  type VortexFile,
  type VortexLayout,
} from "../vortex/mod.ts";
import { formatBytes, textTable } from "./table.ts";
import { UsageError } from "./usage_error.ts";

/** What is printed about a file. Values are as in JSON: large integers as text, bytes in hexadecimal. */
export interface VortexReport {
  readonly file: string;
  readonly bytes: number;
  readonly rows: number;
  readonly dtype: string;
  readonly columns: readonly ColumnReport[];
  readonly layout: LayoutReport;
  readonly firstRows: readonly unknown[];
}

/** What is printed about a column. What the file does not say is null. */
export interface ColumnReport {
  readonly name: string;
  readonly dtype: string;
  /** In the file; null if the columns are not separate there. */
  readonly bytes: number | null;
  /** Without compression. */
  readonly uncompressedBytes: number | null;
  /** Of the first piece of each part. */
  readonly encodings: readonly string[];
  readonly min: unknown;
  readonly max: unknown;
  readonly nulls: number | null;
}

/** A part of the file. */
export interface LayoutReport {
  readonly name: string;
  readonly kind: string;
  readonly dtype: string;
  readonly rows: number;
  readonly bytes: number;
  readonly zoneRows?: number;
  readonly encodings?: string;
  readonly children: readonly LayoutReport[];
}

const shownRows = 5;

/**
 * Describes a file.
 *
 * @param source a path, or an HTTP URL
 * @throws {UsageError} if it does not exist or cannot be read
 */
export async function describeVortex(source: string): Promise<{ report: VortexReport; text: string }> {
  try {
    using file = await openVortex(source);
    const layout = await file.describe();
    const report = await reportOf(source, file, layout);
    return { report, text: textOf(report, layoutLines(layout)) };
  } catch (error) {
    throw badInput(source, error);
  }
}

/** Any failure is the file's, whether found in its contents or reported by the system: it is the only input. */
export function badInput(source: string, error: unknown): UsageError {
  const message = error instanceof Error ? error.message : `${error}`;
  return new UsageError(message.includes(source) ? message : `Cannot read ${source}: ${message}`);
}

async function reportOf(source: string, file: VortexFile, layout: VortexLayout): Promise<VortexReport> {
  const firstRows: unknown[] = [];
  for await (const batch of file.scan({ rows: [0, Math.min(shownRows, file.rowCount)] })) {
    firstRows.push(...batch.toArrow().toArray().map(asJson));
  }
  const { statistics, dtype } = file;
  const columns = dtype.kind === "struct" ? dtype.names : [""];
  const parts = layout.kind === "struct" ? layout.children.filter(({ name }) => name !== "validity") : [layout];
  return {
    file: source,
    bytes: file.byteLength,
    rows: file.rowCount,
    dtype: showDType(dtype),
    columns: columns.map((name, i): ColumnReport => {
      const known = statistics.get(name);
      const part = parts.length === columns.length ? parts[i] : undefined;
      const of = dtype.kind === "struct" ? dtype.fields[i] ?? dtype : dtype;
      const value = (bytes: unknown) => bytes === undefined ? null : asJson(readable(bytes, of.kind));
      return {
        name,
        dtype: showDType(of),
        bytes: part?.bytes ?? null,
        uncompressedBytes: known?.uncompressedBytes ?? null,
        encodings: part === undefined ? [] : [...new Set(encodingsOf(part))],
        min: value(known?.min),
        max: value(known?.max),
        nulls: known?.nullCount ?? null,
      };
    }),
    layout: layoutReport(layout),
    firstRows,
  };
}

/** Statistics of text are its bytes, which may be truncated in the middle of a character. */
function readable(value: unknown, kind: string): unknown {
  return kind === "utf8" && value instanceof Uint8Array ? new TextDecoder().decode(value) : value;
}

/** Encodings of the column's data: those of its zones are the same everywhere, and uninformative. */
function encodingsOf({ kind, encodings, children }: VortexLayout): string[] {
  if (encodings !== undefined) return [showEncodings(encodings)];
  return (kind === "zoned" ? children.slice(0, 1) : children).flatMap(encodingsOf);
}

function layoutReport({ dtype, encodings, children, ...rest }: VortexLayout): LayoutReport {
  return {
    ...rest,
    dtype: showDType(dtype),
    ...encodings !== undefined && { encodings: showEncodings(encodings) },
    children: children.map(layoutReport),
  };
}

/** A value as JSON can represent it. */
function asJson(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : `${value}`;
  if (typeof value === "number") return Number.isFinite(value) ? value : `${value}`;
  if (value instanceof Uint8Array) return value.toHex();
  if (value instanceof Map) return [...value].map(([key, one]) => [asJson(key), asJson(one)]);
  if (Array.isArray(value)) return value.map(asJson);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, asJson(one)]));
}

function textOf({ file, bytes, rows, columns, firstRows }: VortexReport, layout: readonly string[]): string {
  const lines = [`${file}: ${rows} rows, ${formatBytes(bytes)}`, ""];
  const cells = columns.map(({ name, dtype, bytes, uncompressedBytes, encodings, min, max, nulls }) => [
    short(name),
    dtype,
    bytes === null ? "" : formatBytes(bytes),
    uncompressedBytes === null ? "" : formatBytes(uncompressedBytes),
    nulls === null ? "" : `${nulls}`,
    short(min),
    short(max),
    encodings.join("; "),
  ]);
  const titles = ["column", "dtype", "bytes", "plain", "nulls", "min", "max", "encodings"];
  lines.push(...textTable(titles, cells, [2, 3, 4]), "", "layout", ...layout.map((line) => `  ${line}`), "");
  const shown = firstRows.map((row) =>
    columns.length === 1 && columns[0]?.name === ""
      ? [short(row)]
      : columns.map(({ name }) => short((row as Record<string, unknown> | null)?.[name] ?? null))
  );
  if (shown.length > 0) lines.push(...textTable(columns.map(({ name }) => short(name || "value")), shown));
  return lines.join("\n").trimEnd();
}

/** A value as the text of a table cell. */
function short(value: unknown): string {
  if (value === null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  // deno-lint-ignore no-control-regex -- what would move the cursor
  const clean = text.replace(/[\x00-\x1f\x7f-\x9f]/g, "?");
  return clean.length <= 24 ? clean : `${clean.slice(0, 21)}...`;
}
