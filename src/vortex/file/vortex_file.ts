/**
 * Vortex files: their columns, of which only the wanted pieces are read.
 *
 * @module
 */
import { type ArrowStreamExport, exportArrowStream } from "../../arrow/mod.ts";
import { checkMade, checkOptions, type OptionNames, showAs } from "../../layout/mod.ts";
import { fieldOf } from "../arrow/types.ts";
import { showDType, type VortexDType } from "../dtype.ts";
import { homeOf, type VortexReadOptions } from "../read_options.ts";
import { type ArrayHome, VortexArray } from "../vortex_array.ts";
import { type Container, readContainer } from "./container.ts";
import { describedTree, layoutLines, layoutTree, type VortexLayout } from "./describe.ts";
import { typedLayout } from "./layout.ts";
import { type FileReader, openReader, type VortexSource } from "./reader.ts";
import { batchesOfScan, planScan, type ScannedFile, type ScanPlan, type VortexScanOptions } from "./scan.ts";
import { fileStatistics, type VortexColumnStatistics } from "./statistics.ts";

/** Options of {@linkcode openVortex}. */
export interface OpenVortexOptions extends VortexReadOptions {
  /** The file's dtype, for a file that does not store it. */
  readonly dtype?: VortexDType;
}

/** Makes a file. Set by the class, whose constructor is private. */
let make: (reader: FileReader, container: Container, home: ArrayHome) => VortexFile;

const openOptionNames: OptionNames<OpenVortexOptions> = { session: true, limits: true, dtype: true };

// law vortex/openVortex: vortex/file/scan
/**
 * Opens a file: only its end is read.
 *
 * @param source bytes, a Blob or File, a path, a URL, or a custom reader of ranges
 * @throws {SystemError} if it cannot be opened
 * @throws {VortexError} if it is not a Vortex file, or its version is unknown
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
    return make(reader, container, home);
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** A Vortex file. It is read when it is scanned, and only what is wanted is read. Use {@linkcode openVortex}. */
export class VortexFile {
  /** Dtype of the rows: for a table, a struct. */
  readonly dtype: VortexDType;
  /** Number of rows. */
  readonly rowCount: number;
  readonly #file: ScannedFile;
  #isClosed = false;

  /** Use {@linkcode openVortex}. */
  private constructor(reader: FileReader, container: Container, home: ArrayHome) {
    checkMade(home, "VortexFile", "openVortex(source)");
    const { dtype, layout, arrayIds, segments, statistics } = container;
    this.dtype = dtype;
    this.rowCount = layout.rows;
    this.#file = {
      dtype,
      layout: typedLayout(layout, dtype),
      reader,
      home,
      arrayIds,
      segments,
      statistics: () => statistics === null ? [] : fileStatistics(statistics, dtype, layout.rows, home.limits),
    };
    reader.closeWith(this.#file); // which scans keep, also when nothing else refers to this object any more
  }

  static {
    showAs(VortexFile, ({ rowCount, dtype }) => `${rowCount} rows of ${showDType(dtype)}`);
    make = (reader, container, home) => new VortexFile(reader, container, home);
  }

  /** Size of the file in bytes. */
  get byteLength(): number {
    return this.#file.reader.size;
  }

  /** Bytes read so far, and in how many reads. */
  get readStatistics(): { readonly bytes: number; readonly reads: number } {
    return { ...this.#file.reader.statistics };
  }

  /**
   * The file's statistics of its columns, by name; by the empty name if the root is not a struct.
   *
   * @throws {VortexError} if they cannot be read
   */
  get statistics(): ReadonlyMap<string, VortexColumnStatistics> {
    const all = this.#file.statistics();
    const names = this.dtype.kind === "struct" ? this.dtype.names : [""];
    return new Map(names.flatMap((name, i) => all[i] === undefined ? [] : [[name, all[i]]]));
  }

  /**
   * Reads rows in batches. Columns that are not wanted are not read, nor are zones in which, by their statistics, the
   * filter is true for no row. Each loop over the result scans again.
   *
   * @throws {TypeError} for a column that does not exist, or a filter that does not fit
   * @throws {RangeError} for rows that do not exist
   * @throws {VortexError} if the data that is read is wrong
   * @throws {TypeError} if the file is closed meanwhile
   * @throws the reason of `signal`, once that is aborted
   */
  scan(options: VortexScanOptions = {}): AsyncIterable<VortexArray> {
    const plan = planScan(this.#file, options);
    return { [Symbol.asyncIterator]: () => this.#batches(plan) };
  }

  async *#batches(plan: ScanPlan): AsyncGenerator<VortexArray, void, void> {
    for await (const array of batchesOfScan(this.#file, plan)) yield VortexArray.ofDecoded(array, this.#file.home);
  }

  /**
   * All wanted rows as an Arrow stream, for a consumer that pulls arrays one by one. It pulls where no JavaScript can
   * run, so all rows are read beforehand.
   *
   * @throws {TypeError} for a column that does not exist, or a filter that does not fit
   * @throws {RangeError} for rows that do not exist
   * @throws {VortexError} if the data that is read is wrong
   * @throws {TypeError} if the file is closed meanwhile
   * @throws the reason of `signal`, once that is aborted
   */
  async toArrowStream(options: VortexScanOptions = {}): Promise<ArrowStreamExport> {
    const plan = planScan(this.#file, options);
    const arrays = await Array.fromAsync(this.#batches(plan), (batch) => batch.toArrow());
    return exportArrowStream(arrays, { field: fieldOf(plan.dtype, "", this.#file.home.session) });
  }

  /** The structure of the file: the parts of its columns, and the size of each. Nothing is read for it. */
  get layout(): VortexLayout {
    return layoutTree(this.#file);
  }

  /**
   * Like `layout`, with the encodings of each column's first piece, of which only the description is read.
   *
   * @throws {VortexError} if the data that is read is wrong
   */
  describe(): Promise<VortexLayout> {
    return describedTree(this.#file);
  }

  /** The contents of the file: rows, columns, and the layout tree with the bytes of each part, one per line. */
  explain(): string {
    return [
      `${this.rowCount} rows of ${showDType(this.dtype)}`,
      `${this.byteLength} bytes`,
      ...layoutLines(this.layout),
    ].join("\n");
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Ends all scans at once: those that wait for a read are rejected, and HTTP requests aborted. Another source is
   * closed once no read is in flight. Closing twice is harmless.
   */
  close(): void {
    this.#isClosed = true;
    this.#file.reader.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }
}
