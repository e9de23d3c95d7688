/**
 * Scans: which rows of which columns are wanted, and how they come in batches, with no more in memory than a limit.
 *
 * @module
 */
import { checkOptions, type OptionNames, show } from "../../layout/mod.ts";
import { abortable } from "../../unix/mod.ts";
import type { CanonicalArray, StructArray } from "../canonical.ts";
import { DecodeContext } from "../decode_context.ts";
import type { VortexDType } from "../dtype.ts";
import { VortexError } from "../error.ts";
import { takeOf } from "../ops/take.ts";
import type { ArrayHome } from "../vortex_array.ts";
import type { ByteRange } from "./coalesce.ts";
import { projected, readerOf } from "./column_reader.ts";
import { bindFilter, columnOf, columnsOf, type Predicate, type VortexFilter } from "./filter.ts";
import type { FlatLayout, Layout, ZonedLayout } from "./layout.ts";
import { matchingRows } from "./mask.ts";
import { type ColumnBounds, isFalsified } from "./prune.ts";
import { ReadAhead } from "./read_ahead.ts";
import type { FileReader } from "./reader.ts";
import { batchesOf, batchesOfPieces, type BatchSizes, keptRows, type RowRange } from "./rows.ts";
import type { VortexColumnStatistics } from "./statistics.ts";
import { boundsOfZone, type Zones } from "./zones.ts";

/** Options of `VortexFile.scan`. */
export interface VortexScanOptions {
  /** Names of the wanted columns, in the order of the output. Default: all. */
  readonly columns?: readonly string[];
  /** The first row, and the one after the last. Default: all. */
  readonly rows?: readonly [start: number, end: number];
  /** Which rows are wanted. Default: all. */
  readonly filter?: VortexFilter;
  /** Maximum rows per batch. Default 65536, or fewer where a piece of a column ends, so that it need not be copied. */
  readonly batchRows?: number;
  /** Maximum bytes to read ahead, besides the current batch. Default 64 MiB. */
  readonly readAhead?: number;
  /** Ends the scan for its caller: what waits for the next batch is then rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

const scanOptionNames: OptionNames<VortexScanOptions> = {
  columns: true,
  rows: true,
  filter: true,
  batchRows: true,
  readAhead: true,
  signal: true,
};

/** The file that is scanned. */
export interface ScannedFile {
  readonly dtype: VortexDType;
  readonly layout: Layout;
  readonly reader: FileReader;
  readonly home: ArrayHome;
  /** Encoding ids, indexed by the numbers in array nodes. */
  readonly arrayIds: readonly string[];
  readonly segments: readonly ByteRange[];
  /** Statistics of whole columns; empty if the file has none. */
  readonly statistics: () => readonly VortexColumnStatistics[];
}

/** A checked scan. */
export interface ScanPlan {
  readonly rows: RowRange;
  /** The filter, with columns by their index among those that are read. */
  readonly predicate: Predicate | null;
  /** The same, with columns by their index in the file. */
  readonly original: Predicate | null;
  /** The root fields that are read; undefined for all. */
  readonly fields: readonly number[] | undefined;
  /** How many of these fields, at the end, only the filter needs. */
  readonly extra: number;
  /** The dtype of the batches. */
  readonly dtype: VortexDType;
  readonly batchRows: number;
  /** Whether batches may have fewer rows than `batchRows`. */
  readonly isFree: boolean;
  readonly readAhead: number;
  readonly signal: AbortSignal | undefined;
}

/** Maximum number of reads in flight. */
const requests = 4;
/** Rows whose segments are planned together, and how many such windows are planned ahead. */
const windowRows = 65_536;
const windowsAhead = 64;
/** Batch sizes when the caller gives none. The least is the number of rows for which writers store statistics. */
const batchSizes: BatchSizes = { most: 65_536, least: 8192 };

// law vortex/planScan: vortex/file/scan
/**
 * Checks the options of a scan.
 *
 * @throws {TypeError} for a column that does not exist, or a filter that does not fit
 * @throws {RangeError} for rows that do not exist
 */
export function planScan({ dtype, layout }: ScannedFile, options: VortexScanOptions): ScanPlan {
  checkOptions(options, scanOptionNames);
  const { columns, rows = [0, layout.rows], filter, batchRows = batchSizes.most, readAhead = 64 << 20, signal } =
    options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new TypeError(`Expected signal to be an AbortSignal, got ${show(signal)}`);
  }
  if (!Array.isArray(rows) || rows.length !== 2) {
    throw new TypeError(`Expected rows to be [start, end], got ${show(rows)}`);
  }
  const [start, end] = rows;
  if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= layout.rows)) {
    throw new RangeError(`Cannot scan the rows from ${show(start)} to ${show(end)} of ${layout.rows}`);
  }
  for (const [name, value] of [["batchRows", batchRows], ["readAhead", readAhead]] as const) {
    if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`Cannot scan with ${name} ${show(value)}`);
  }
  const predicate = filter === undefined ? null : bindFilter(filter, dtype);
  if (columns !== undefined && !Array.isArray(columns)) {
    throw new TypeError(`Expected columns to be an array of names, got ${show(columns)}`);
  }
  const wanted = columns?.map((name) => rootColumn(name, dtype));
  const twice = columns?.find((name, i) => columns.indexOf(name) !== i);
  if (twice !== undefined) throw new TypeError(`Cannot scan the column ${show(twice)} twice at once`);
  // Columns of the filter are read too, after the wanted ones.
  const roots = predicate === null ? [] : columnsOf(predicate).flatMap(([first]) => first ?? []);
  const fields = wanted === undefined
    ? undefined
    : [...wanted, ...new Set(roots.filter((root) => !wanted.includes(root)))];
  return {
    rows: { start, end },
    predicate: predicate === null || fields === undefined ? predicate : moved(predicate, fields),
    original: predicate,
    fields,
    extra: fields === undefined || wanted === undefined ? 0 : fields.length - wanted.length,
    dtype: projected(dtype, wanted),
    batchRows,
    isFree: options.batchRows === undefined,
    readAhead,
    signal,
  };
}

function rootColumn(name: string, dtype: VortexDType): number {
  if (dtype.kind !== "struct") throw new TypeError(`There is no column ${show(name)}: the file has no columns`);
  return columnOf([name], dtype).path[0] ?? 0;
}

/** A predicate remapped to some of the root's fields. */
function moved(predicate: Predicate, fields: readonly number[]): Predicate {
  if (predicate.kind !== "test") {
    return { ...predicate, parts: predicate.parts.map((part) => moved(part, fields)) };
  }
  const [first, ...rest] = predicate.path;
  return { ...predicate, path: first === undefined ? [] : [fields.indexOf(first), ...rest] };
}

// law vortex/batchesOfScan: vortex/file/scan
/** The decoded rows of a scan, in non-empty batches. */
export async function* batchesOfScan(
  scanned: ScannedFile,
  plan: ScanPlan,
): AsyncGenerator<CanonicalArray, void, void> {
  const { signal } = plan;
  const file = signal === undefined ? scanned : { ...scanned, reader: abortableReader(scanned.reader, signal) };
  const ahead = new ReadAhead(file.reader, [], { bytes: plan.readAhead, requests });
  const numbers = new Map<FlatLayout, number>();
  const home = {
    ...file.home,
    arrayIds: file.arrayIds,
    segment: (layout: FlatLayout) => ahead.take(numbers.get(layout) ?? -1),
  };
  const reader = readerOf(file.layout, home, plan.fields);
  const add = (layout: FlatLayout) => {
    numbers.getOrInsertComputed(layout, () => ahead.add(rangeOf(file, layout)));
  };
  // Reads are planned one window at a time: a file may have too many rows to enumerate.
  const rows = await survivors(file, plan);
  const windows = plan.isFree
    ? batchesOfPieces(rows, file.layout, plan.fields, batchSizes)
    : batchesOf(rows, plan.batchRows * Math.max(1, Math.floor(windowRows / plan.batchRows)));
  const planned: RowRange[] = [];
  for (;;) {
    while (planned.length === 0 || (ahead.wanted < plan.readAhead && planned.length < windowsAhead)) {
      const next = windows.next();
      if (next.done === true) break;
      reader.segments(next.value.start, next.value.end, add);
      planned.push(next.value);
    }
    const window = planned.shift();
    if (window === undefined) return;
    for (const { start, end } of batchesOf([window], plan.batchRows)) {
      signal?.throwIfAborted(); // what is read already does not wait for the reader
      file.reader.checkOpen();
      const array = filtered(await reader.read(start, end), plan, file.home);
      if (array.length > 0) yield array;
    }
  }
}

/** A reader that reads no more once a signal is aborted. What is in flight then ends without its caller. */
function abortableReader(reader: FileReader, signal: AbortSignal): FileReader {
  const read = async (offset: number, length: number) => {
    signal.throwIfAborted();
    return await abortable(reader.read(offset, length), signal);
  };
  return {
    size: reader.size,
    gap: reader.gap,
    statistics: reader.statistics,
    checkOpen: () => reader.checkOpen(),
    read,
    close: () => reader.close(),
    closeWith: (user) => reader.closeWith(user),
  };
}

function rangeOf({ segments }: ScannedFile, { segment }: FlatLayout): ByteRange {
  return segments[segment] ?? { offset: 0, length: 0 };
}

/** The rows of a batch for which the filter is true, without the columns that only the filter needs. */
function filtered(array: CanonicalArray, { predicate, extra }: ScanPlan, { session, limits }: ArrayHome) {
  const kept = predicate === null ? null : matchingRows(predicate, array);
  const bare = extra === 0 || array.kind !== "struct" ? array : withoutLast(array, extra);
  if (kept === null || kept.length === array.length) return bare;
  return takeOf(bare, kept, null, new DecodeContext(session, limits).allocateForAll);
}

function withoutLast(array: StructArray, extra: number): CanonicalArray {
  const { dtype } = array;
  const cut = { ...dtype, names: dtype.names.slice(0, -extra), fields: dtype.fields.slice(0, -extra) };
  return { ...array, dtype: cut, fields: array.fields.slice(0, -extra) };
}

// law vortex/survivors: vortex/file/old_files, vortex/file/container
/** The rows, except those that statistics rule out for the filter. */
async function survivors(file: ScannedFile, { rows, original }: ScanPlan): Promise<Iterable<RowRange>> {
  if (rows.start === rows.end) return [];
  if (original === null) return [rows];
  const { dtype, layout } = file;
  const whole = await unlessWrong(() => file.statistics()) ?? [];
  const wholeBounds = (path: readonly number[]): ColumnBounds | null => {
    // Statistics of fields do not cover which rows of the root are null.
    if (dtype.kind !== "struct") return path.length === 0 ? whole[0] ?? null : null;
    return path.length === 1 && !dtype.nullable ? whole[path[0] ?? -1] ?? null : null;
  };
  if (isFalsified(original, wholeBounds)) return [];
  const tables = new Map<string, ZoneTable>();
  await Promise.all(
    columnsOf(original).map(async (path) => {
      const table = await zoneTable(file, zonedAt(layout, path));
      if (table !== null) tables.set(`${path}`, table);
    }),
  );
  if (tables.size === 0) return [rows];
  const sizes = [...tables.values()].map(({ zones }) => zones.length);
  return keptRows(rows, sizes, ({ start }) =>
    !isFalsified(original, (path) => {
      const known = tables.get(`${path}`);
      if (known === undefined) return null;
      const zone = Math.floor(start / known.zones.length);
      const count = Math.min(known.rows - zone * known.zones.length, known.zones.length);
      return boundsOfZone(known.zones, known.table, zone, count);
    }));
}

/** The statistics of a column's zones, once read. */
interface ZoneTable {
  readonly zones: Zones;
  /** Rows of the column. */
  readonly rows: number;
  readonly table: CanonicalArray;
}

/** Reads the zones of a column; null if it has none that can be interpreted: then all rows are read. */
async function zoneTable(file: ScannedFile, zoned: ZonedLayout | undefined): Promise<ZoneTable | null> {
  if (zoned === undefined || zoned.zones === null) return null;
  const { zones, rows } = zoned;
  const home = {
    ...file.home,
    arrayIds: file.arrayIds,
    segment: (flat: FlatLayout) => {
      const { offset, length } = rangeOf(file, flat);
      return file.reader.read(offset, length);
    },
  };
  const table = await unlessWrong(() => readerOf(zones.table, home).read(0, zones.table.rows));
  return table === null ? null : { zones, rows, table };
}

/** Statistics, or null if they are wrong or not understood: they only save work, and rows are right without them. */
async function unlessWrong<Read>(read: () => Read | Promise<Read>): Promise<Read | null> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof VortexError) return null;
    throw error;
  }
}

/**
 * The zones of a column; undefined if it has none. Those below a nullable struct were computed without regard to its
 * nulls, and say nothing.
 */
function zonedAt(layout: Layout, path: readonly number[]): ZonedLayout | undefined {
  if (layout.kind === "zoned") return path.length === 0 ? layout : zonedAt(layout.data, path);
  const [first, ...rest] = path;
  if (layout.kind !== "struct" || first === undefined || layout.validity !== null) return undefined;
  const field = layout.fields[first];
  return field === undefined ? undefined : zonedAt(field, rest);
}
