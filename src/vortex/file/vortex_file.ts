/**
 * Files of Vortex: their columns, read in the pieces that are wanted.
 *
 * @module
 */
import { type ArrowArray, type ArrowStreamExport, exportArrowStream } from "../../arrow/mod.ts";
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
  /** The file's dtype, for one that does not say it. */
  readonly dtype?: VortexDType;
}

/** Makes a file. Filled in by the class, whose constructor is private. */
let make: (reader: FileReader, container: Container, home: ArrayHome) => VortexFile;

const openOptionNames: OptionNames<OpenVortexOptions> = { session: true, limits: true, dtype: true };

// law vortex/openVortex: vortex/file/scan
/**
 * Opens a file: its end is read, and nothing else.
 *
 * @param source bytes, a Blob or File, a path, a URL, or a reader of ranges of your own
 * @throws {SystemError} if it cannot be opened
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
    return make(reader, container, home);
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
  readonly #file: ScannedFile;

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
  }

  static {
    showAs(VortexFile, ({ rowCount, dtype }) => `${rowCount} rows of ${showDType(dtype)}`);
    make = (reader, container, home) => new VortexFile(reader, container, home);
  }

  /** Bytes of the file. */
  get byteLength(): number {
    return this.#file.reader.size;
  }

  /** Bytes that were read so far, and in how many reads. */
  get readStatistics(): { readonly bytes: number; readonly reads: number } {
    return { ...this.#file.reader.statistics };
  }

  /**
   * What the file says of its columns, by their names; of a root that is no struct, by the empty name.
   *
   * @throws {VortexError} if it cannot be read
   */
  get statistics(): ReadonlyMap<string, VortexColumnStatistics> {
    const all = this.#file.statistics();
    const names = this.dtype.kind === "struct" ? this.dtype.names : [""];
    return new Map(names.flatMap((name, i) => all[i] === undefined ? [] : [[name, all[i]]]));
  }

  /**
   * Reads rows in batches. Columns that are not wanted are not read, nor are zones of rows in which, by their
   * statistics, the filter is true of none. Each loop over what is returned scans once more.
   *
   * @throws {TypeError} for a column that is not there, or a filter that does not fit
   * @throws {RangeError} for rows that are not there
   * @throws {VortexError} if what is read is wrong
   */
  scan(options: VortexScanOptions = {}): AsyncIterable<VortexArray> {
    const plan = planScan(this.#file, options);
    return { [Symbol.asyncIterator]: () => this.#batches(plan) };
  }

  async *#batches(plan: ScanPlan): AsyncGenerator<VortexArray, void, void> {
    for await (const array of batchesOfScan(this.#file, plan)) yield VortexArray.ofDecoded(array, this.#file.home);
  }

  /**
   * All rows that are wanted as a stream of Arrow, for a consumer that asks for arrays one by one. It asks where no
   * JavaScript can run, so all of them are read before.
   *
   * @throws {TypeError} for a column that is not there, or a filter that does not fit
   * @throws {RangeError} for rows that are not there
   * @throws {VortexError} if what is read is wrong
   */
  async toArrowStream(options: VortexScanOptions = {}): Promise<ArrowStreamExport> {
    const plan = planScan(this.#file, options);
    const arrays: ArrowArray[] = [];
    for await (const batch of this.#batches(plan)) arrays.push(batch.toArrow());
    return exportArrowStream(arrays, { field: fieldOf(plan.dtype, "", this.#file.home.session) });
  }

  /** How the file is made up: which parts its columns have, and how large each is. Nothing is read for it. */
  get layout(): VortexLayout {
    return layoutTree(this.#file);
  }

  /**
   * The same with the encodings of each column's first piece, of which only the description is read.
   *
   * @throws {VortexError} if what is read is wrong
   */
  describe(): Promise<VortexLayout> {
    return describedTree(this.#file);
  }

  /** What the file consists of: rows, columns, and the tree of layouts with the bytes of each, one in a line. */
  explain(): string {
    return [
      `${this.rowCount} rows of ${showDType(this.dtype)}`,
      `${this.byteLength} bytes`,
      ...layoutLines(this.layout),
    ].join("\n");
  }

  /** Closes the source when no read is under way. Closing twice is harmless. */
  close(): void {
    this.#file.reader.close();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }
}
