/**
 * Files of Vortex: their columns, read in the pieces that are wanted.
 *
 * @module
 */
import { type ArrowStreamExport, exportArrowStream } from "../../arrow/mod.ts";
import { checkOptions, type OptionNames, show } from "../../layout/mod.ts";
import type { CanonicalArray } from "../canonical.ts";
import { DecodeContext } from "../decode_context.ts";
import { showDType, type VortexDType } from "../dtype.ts";
import { fieldOf } from "../arrow/types.ts";
import { takeOf } from "../ops/take.ts";
import { homeOf, type VortexReadOptions } from "../read_options.ts";
import { type ArrayHome, VortexArray } from "../vortex_array.ts";
import type { ByteRange } from "./coalesce.ts";
import { projected, readerOf } from "./column_reader.ts";
import { type Container, readContainer } from "./container.ts";
import { bindFilter, columnsOf, type Predicate, type VortexFilter } from "./filter.ts";
import { type FlatLayout, type Layout, typedLayout, type ZonedLayout } from "./layout.ts";
import { matchingRows } from "./mask.ts";
import { type ColumnBounds, isFalsified } from "./prune.ts";
import { ReadAhead } from "./read_ahead.ts";
import { type FileReader, openReader, type VortexSource } from "./reader.ts";
import { batchesOf, keptRows, type RowRange } from "./rows.ts";
import { fileStatistics, type VortexColumnStatistics } from "./statistics.ts";
import { boundsOfZone } from "./zones.ts";

/** Options of {@linkcode openVortex}. */
export interface OpenVortexOptions extends VortexReadOptions {
  /** The file's dtype, for one that does not say it. */
  readonly dtype?: VortexDType;
}

const openOptionNames: OptionNames<OpenVortexOptions> = { session: true, limits: true, dtype: true };

/** Options of {@linkcode VortexFile.scan}. */
export interface VortexScanOptions {
  /** Names of the columns that are wanted, in the order in which they come. Default: all. */
  readonly columns?: readonly string[];
  /** The first row, and the one behind the last. Default: all. */
  readonly rows?: readonly [start: number, end: number];
  /** Which rows are wanted. Default: all. */
  readonly filter?: VortexFilter;
  /** Rows of a batch at most. Default 65536. */
  readonly batchRows?: number;
  /** Bytes that are read ahead at most, beside the batch that is worked on. Default 64 MiB. */
  readonly readAhead?: number;
}

const scanOptionNames: OptionNames<VortexScanOptions> = {
  columns: true,
  rows: true,
  filter: true,
  batchRows: true,
  readAhead: true,
};

/** Reads under way at once. */
const requests = 4;

/**
 * Opens a file: its end is read, and nothing else.
 *
 * @param source bytes, a Blob or File, a path, a URL, or a reader of ranges of your own
 * @throws {VortexError} if it is no file of Vortex, or of a version that is not known
 *
 * @example
 * ```ts ignore
 * using file = await openVortex("taxi.vortex");
 * for await (const batch of file.scan({ columns: ["fare"], filter: { column: "fare", op: ">", value: 100 } })) {
 *   console.log(`${batch}`);
 * }
 * ```
 */
export async function openVortex(source: VortexSource, options: OpenVortexOptions = {}): Promise<VortexFile> {
  checkOptions(options, openOptionNames);
  const { dtype, ...rest } = options;
  const home = homeOf(rest);
  const reader = await openReader(source);
  try {
    const container = await readContainer(reader, home.limits, dtype);
    return new VortexFile(reader, container, home);
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** A file. It reads when it is scanned, and only what is wanted. Use {@linkcode openVortex}. */
export class VortexFile {
  /** What the rows are: of a table a struct. */
  readonly dtype: VortexDType;
  /** Rows. */
  readonly rowCount: number;
  readonly #reader: FileReader;
  readonly #container: Container;
  readonly #home: ArrayHome;
  readonly #layout: Layout;

  /** Use {@linkcode openVortex}. */
  constructor(reader: FileReader, container: Container, home: ArrayHome) {
    this.dtype = container.dtype;
    this.rowCount = container.layout.rows;
    this.#reader = reader;
    this.#container = container;
    this.#home = home;
    this.#layout = typedLayout(container.layout, container.dtype);
  }

  /** Bytes of the file. */
  get byteLength(): number {
    return this.#reader.size;
  }

  /** Bytes that were read so far, and in how many reads. */
  get readStatistics(): { readonly bytes: number; readonly reads: number } {
    return { ...this.#reader.statistics };
  }

  /** What the file says of its columns, by their names; of a root that is no struct, by the empty name. */
  get statistics(): ReadonlyMap<string, VortexColumnStatistics> {
    const all = this.#statistics();
    const names = this.dtype.kind === "struct" ? this.dtype.names : [""];
    return new Map(names.flatMap((name, i) => all[i] === undefined ? [] : [[name, all[i]]]));
  }

  #statistics(): readonly VortexColumnStatistics[] {
    const { statistics, dtype } = this.#container;
    return statistics === null ? [] : fileStatistics(statistics, dtype, this.rowCount, this.#home.limits);
  }

  /**
   * Reads rows in batches. Columns that are not wanted are not read, nor are zones of rows in which, by their
   * statistics, the filter is true of none.
   *
   * @throws {TypeError} for a column that is not there, or a filter that does not fit
   * @throws {RangeError} for rows that are not there
   * @throws {VortexError} if what is read is wrong
   */
  scan(options: VortexScanOptions = {}): AsyncIterable<VortexArray> {
    checkOptions(options, scanOptionNames);
    const plan = this.#plan(options);
    return { [Symbol.asyncIterator]: () => this.#batches(plan) };
  }

  /**
   * All rows that are wanted as a stream of Arrow, for a consumer that asks for arrays one by one. It asks where no
   * JavaScript can run, so all of them are read before.
   */
  async toArrowStream(options: VortexScanOptions = {}): Promise<ArrowStreamExport> {
    checkOptions(options, scanOptionNames);
    const plan = this.#plan(options);
    const arrays = await Array.fromAsync(this.scan(options), (batch) => batch.toArrow());
    return exportArrowStream(arrays, { field: fieldOf(plan.dtype, "", this.#home.session) });
  }

  #plan(options: VortexScanOptions): ScanPlan {
    const { columns, rows = [0, this.rowCount], filter, batchRows = 65_536, readAhead = 64 << 20 } = options;
    const [start, end] = rows;
    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= this.rowCount)) {
      throw new RangeError(`Cannot scan the rows from ${start} to ${end} of ${this.rowCount}`);
    }
    for (const [name, value] of [["batchRows", batchRows], ["readAhead", readAhead]] as const) {
      if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`Cannot scan with ${name} ${value}`);
    }
    const predicate = filter === undefined ? null : bindFilter(filter, this.dtype);
    const wanted = columns?.map((name) => this.#columnOf(name));
    // Columns of the filter are read as well, behind those that are wanted.
    const roots = predicate === null ? [] : columnsOf(predicate).map(([first]) => first);
    const others = wanted === undefined ? [] : roots.filter((root) => root !== undefined && !wanted.includes(root));
    const fields = wanted === undefined ? undefined : [...wanted, ...new Set(others as number[])];
    return {
      rows: { start, end },
      predicate: predicate === null || fields === undefined ? predicate : moved(predicate, fields),
      original: predicate,
      fields,
      extra: fields === undefined || wanted === undefined ? 0 : fields.length - wanted.length,
      dtype: projected(this.dtype, wanted),
      batchRows,
      readAhead,
    };
  }

  #columnOf(name: string): number {
    const { dtype } = this;
    if (dtype.kind !== "struct") throw new TypeError(`There is no column ${show(name)}: the file has no columns`);
    const index = dtype.names.indexOf(name);
    if (index >= 0) return index;
    throw new TypeError(`There is no column ${show(name)}. There are ${dtype.names.map(show).join(", ")}`);
  }

  async *#batches(plan: ScanPlan): AsyncGenerator<VortexArray, void, void> {
    const ranges = await this.#survivors(plan);
    const batches = [...batchesOf(ranges, plan.batchRows)];
    const order = new Map<FlatLayout, number>();
    const wanted: ByteRange[] = [];
    const home = {
      ...this.#home,
      arrayIds: this.#container.arrayIds,
      segment: (layout: FlatLayout) => ahead.take(order.get(layout) ?? -1),
    };
    const reader = readerOf(this.#layout, home, plan.fields);
    for (const { start, end } of batches) {
      reader.segments(start, end, (layout) => {
        if (order.has(layout)) return;
        order.set(layout, wanted.length);
        wanted.push(this.#rangeOf(layout));
      });
    }
    const ahead = new ReadAhead(this.#reader, wanted, { bytes: plan.readAhead, requests });
    for (const { start, end } of batches) {
      const array = this.#filtered(await reader.read(start, end), plan);
      if (array.length > 0) yield VortexArray.ofDecoded(array, this.#home);
    }
  }

  #rangeOf({ segment }: FlatLayout): ByteRange {
    return this.#container.segments[segment] ?? { offset: 0, length: 0 };
  }

  /** The rows of a batch that the filter is true of, without the columns that only it needs. */
  #filtered(array: CanonicalArray, { predicate, extra }: ScanPlan): CanonicalArray {
    const kept = predicate === null ? null : matchingRows(predicate, array);
    const { session, limits } = this.#home;
    const bare = extra === 0 || array.kind !== "struct" ? array : withoutLast(array, extra);
    if (kept === null || kept.length === array.length) return bare;
    return takeOf(bare, kept, null, new DecodeContext(session, limits).allocateForAll);
  }

  // law vortex/VortexFile.survivors: vortex/file/files
  /** The rows of which statistics do not say that the filter is true of none. */
  async #survivors({ rows, original }: ScanPlan): Promise<RowRange[]> {
    if (original === null || rows.start === rows.end) return rows.start === rows.end ? [] : [rows];
    const whole = this.#statistics();
    const isWholeFalse = isFalsified(original, (path) => path.length === 1 ? whole[path[0] ?? -1] ?? null : null);
    if (isWholeFalse) return [];
    const tables = new Map<string, { readonly zoned: ZonedLayout; readonly table: CanonicalArray }>();
    for (const path of columnsOf(original)) {
      const zoned = zonedAt(this.#layout, path);
      if (zoned?.zones === undefined || zoned.zones === null) continue;
      tables.set(`${path}`, { zoned, table: await this.#readAll(zoned.zones.table) });
    }
    const borders = [...tables.values()].flatMap(({ zoned: { zones, rows } }) => {
      const { length } = zones ?? { length: rows };
      return Array.from({ length: Math.ceil(rows / length) }, (_, zone) => zone * length);
    }).sort((one, other) => one - other);
    return keptRows(rows, borders, ({ start }) => {
      const boundsOf = (path: readonly number[]): ColumnBounds | null => {
        const known = tables.get(`${path}`);
        if (known === undefined || known.zoned.zones === null) return null;
        const { zones } = known.zoned;
        const zone = Math.floor(start / zones.length);
        const count = Math.min(known.zoned.rows, (zone + 1) * zones.length) - zone * zones.length;
        return boundsOfZone(zones, known.table, zone, count);
      };
      return !isFalsified(original, boundsOf);
    });
  }

  /** All of a small layout. */
  #readAll(layout: Layout): Promise<CanonicalArray> {
    const home = {
      ...this.#home,
      arrayIds: this.#container.arrayIds,
      segment: (flat: FlatLayout) => {
        const { offset, length } = this.#rangeOf(flat);
        return this.#reader.read(offset, length);
      },
    };
    return readerOf(layout, home).read(0, layout.rows);
  }

  /** What the file consists of: rows, columns, and the tree of layouts with the bytes of each. */
  explain(): string {
    const { segments } = this.#container;
    const lines = [`${this.rowCount} rows of ${showDType(this.dtype)}`, `${this.byteLength} bytes`];
    const write = (layout: Layout, name: string, indent: string): void => {
      const { rows } = layout;
      const size = (of: Layout): number => {
        if (of.kind === "flat") return segments[of.segment]?.length ?? 0;
        return childrenOf(of).reduce((sum, [, child]) => sum + size(child), 0);
      };
      const zones = layout.kind === "zoned" && layout.zones !== null ? `, zones of ${layout.zones.length} rows` : "";
      const count = layout.kind === "chunked" ? `, ${layout.chunks.length} chunks` : "";
      lines.push(`${indent}${name}: ${layout.kind}, ${rows} rows, ${size(layout)} bytes${zones}${count}`);
      if (layout.kind === "chunked") return;
      for (const [inner, child] of childrenOf(layout)) write(child, inner, `${indent}  `);
    };
    write(this.#layout, "root", "");
    return lines.join("\n");
  }

  /** Closes the source when no read is under way. Closing twice is harmless. */
  close(): void {
    this.#reader.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

interface ScanPlan {
  readonly rows: RowRange;
  /** The filter by the places of the columns that are read. */
  readonly predicate: Predicate | null;
  /** The same by the places of the file's columns. */
  readonly original: Predicate | null;
  /** The root fields that are read; undefined for all. */
  readonly fields: readonly number[] | undefined;
  /** How many of them, at the end, only the filter needs. */
  readonly extra: number;
  /** The dtype of the batches. */
  readonly dtype: VortexDType;
  readonly batchRows: number;
  readonly readAhead: number;
}

/** A predicate on some of the root's fields. */
function moved(predicate: Predicate, fields: readonly number[]): Predicate {
  if (predicate.kind !== "test") {
    return { ...predicate, parts: predicate.parts.map((part) => moved(part, fields)) };
  }
  const [first, ...rest] = predicate.path;
  return { ...predicate, path: first === undefined ? [] : [fields.indexOf(first), ...rest] };
}

function withoutLast(array: CanonicalArray & { readonly kind: "struct" }, extra: number): CanonicalArray {
  const { dtype } = array;
  const cut = {
    ...dtype,
    names: dtype.names.slice(0, -extra),
    fields: dtype.fields.slice(0, -extra),
  };
  return { ...array, dtype: cut, fields: array.fields.slice(0, -extra) };
}

/**
 * The zones of a column; undefined if it has none. Those below a struct that may be null were made without looking at
 * its nulls, and say nothing.
 */
function zonedAt(layout: Layout, path: readonly number[]): ZonedLayout | undefined {
  if (layout.kind === "zoned") return path.length === 0 ? layout : zonedAt(layout.data, path);
  const [first, ...rest] = path;
  if (layout.kind !== "struct" || first === undefined || layout.validity !== null) return undefined;
  const field = layout.fields[first];
  return field === undefined ? undefined : zonedAt(field, rest);
}

/** The parts of a layout, by name. */
function childrenOf(layout: Layout): readonly (readonly [name: string, child: Layout])[] {
  switch (layout.kind) {
    case "flat":
      return [];
    case "chunked":
      return layout.chunks.map((chunk, i) => [`${i}`, chunk]);
    case "struct":
      return [
        ...layout.validity === null ? [] : [["validity", layout.validity] as const],
        ...layout.fields.map((field, i) => [layout.dtype.names[i] ?? `${i}`, field] as const),
      ];
    case "dict":
      return [["values", layout.values], ["codes", layout.codes]];
    case "zoned":
      return [["data", layout.data], ...layout.zones === null ? [] : [["zones", layout.zones.table] as const]];
    case "list":
      return [
        ["elements", layout.elements],
        ["offsets", layout.offsets],
        ...layout.validity === null ? [] : [["validity", layout.validity] as const],
      ];
  }
}
