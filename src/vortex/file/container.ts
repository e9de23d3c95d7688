/**
 * The container of a file: what its end says about the rest.
 *
 * @module
 */
import type { VortexDType } from "../dtype.ts";
import { VortexError } from "../error.ts";
import type { VortexLimits } from "../limits.ts";
import { readDType } from "../wire/dtype_flatbuffer.ts";
import { FlatTable } from "../wire/flatbuffer.ts";
import { type Bytes, noBytes, ownBytes } from "../wire/source.ts";
import type { ByteRange } from "./coalesce.ts";
import type { FileReader } from "./reader.ts";

/** A node of the layout tree that is readable but otherwise unchecked. */
export interface RawLayout {
  readonly id: string;
  readonly rows: number;
  readonly metadata: Bytes;
  readonly children: readonly RawLayout[];
  /** Indices of segments. */
  readonly segments: readonly number[];
}

/** The contents of the end of a file. */
export interface Container {
  readonly dtype: VortexDType;
  readonly layout: RawLayout;
  /** Encoding ids, indexed by the numbers in array nodes. */
  readonly arrayIds: readonly string[];
  readonly segments: readonly ByteRange[];
  /** The flatbuffer with the statistics of whole columns; null if there is none. */
  readonly statistics: Bytes | null;
}

const MAGIC = 0x4658_5456; // VTXF
const VERSION = 1;
/** Bytes of the tail: version, size of the postscript, magic. */
const tailBytes = 8;
/** Bytes of the first read, from the end: the postscript is never larger. */
const firstRead = 65_535;
/** Largest exponent of an alignment: segments begin at a multiple of at most 2^16. */
const maxAlignment = 16;

function fail(why: string, path = "file"): never {
  throw new VortexError(path, `Cannot read a Vortex file: ${why}`);
}

// law vortex/readContainer: vortex/file/container
/**
 * Reads the end of a file: one read, plus one for each part that begins before it.
 *
 * @param dtype for a file that does not store its own
 */
export async function readContainer(
  reader: FileReader,
  limits: VortexLimits,
  dtype: VortexDType | undefined,
): Promise<Container> {
  const { size } = reader;
  if (size < tailBytes + 4) fail(`${size} bytes are too few`);
  const end = new End(reader, ownBytes(await reader.read(Math.max(0, size - firstRead), Math.min(size, firstRead))));
  const postscript = postscriptOf(end.bytes, limits);
  const part = (slot: number): ByteRange | null => partOf(postscript, slot, size);
  const [dtypePart, layoutPart, statisticsPart, footerPart] = [part(0), part(1), part(2), part(3)];
  if (layoutPart === null || footerPart === null) return fail("its postscript lacks a layout or a footer");
  if (dtypePart === null && dtype === undefined) fail("it does not store its dtype: pass { dtype }");
  const [dtypeBytes, layoutBytes, statistics, footerBytes] = await Promise.all([
    end.read(dtypePart),
    end.read(layoutPart),
    end.read(statisticsPart),
    end.read(footerPart),
  ]);
  const footer = FlatTable.root(footerBytes ?? noBytes, "footer", "footer", limits.nodes);
  refuseSchemes(footer);
  const [arrayIds, layoutIds] = [idsOf(footer, 0), idsOf(footer, 1)];
  const segments = segmentsOf(footer, size);
  const layout = FlatTable.root(layoutBytes ?? noBytes, "layout", "layout", limits.nodes);
  return {
    dtype: dtypeBytes === null ? dtype ?? fail("it has no dtype") : readDType(dtypeBytes, "dtype", limits),
    layout: layoutOf(layout, layoutIds, segments.length, limits.depth),
    arrayIds,
    segments,
    statistics,
  };
}

/** The end of a file, and what lies before it where needed. */
class End {
  readonly bytes: Bytes;
  readonly #reader: FileReader;
  readonly #start: number;

  constructor(reader: FileReader, bytes: Bytes) {
    this.bytes = bytes;
    this.#reader = reader;
    this.#start = reader.size - bytes.length;
  }

  /** A part of the file, in memory aligned to 8; null if there is no such part. */
  async read(part: ByteRange | null): Promise<Bytes | null> {
    if (part === null) return null;
    const { offset, length } = part;
    const at = offset - this.#start;
    return at >= 0 ? this.bytes.slice(at, at + length) : ownBytes(await this.#reader.read(offset, length)).slice();
  }
}

// law vortex/postscriptOf: vortex/file/container
function postscriptOf(bytes: Bytes, limits: VortexLimits): FlatTable {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tail = bytes.length - tailBytes;
  if (view.getUint32(tail + 4, true) !== MAGIC) fail("it does not end with VTXF: it is another format, or truncated");
  const version = view.getUint16(tail, true);
  if (version !== VERSION) fail(`its version is ${version}. Expected ${VERSION}`);
  const size = view.getUint16(tail + 2, true);
  if (size > tail) fail(`its postscript has ${size} bytes, more than available`);
  return FlatTable.root(bytes.slice(tail - size, tail), "postscript", "postscript", limits.nodes);
}

/** A part of the file, by its slot in the postscript. */
function partOf(postscript: FlatTable, slot: number, size: number): ByteRange | null {
  const table = postscript.table(slot);
  if (table === null) return null;
  const [offset, length] = [table.u64(0), table.u32(1)];
  if (offset + length > size) fail(`part ${slot} ends at ${offset + length} of ${size} bytes`, "postscript");
  const scheme = table.table(3)?.u8(0) ?? 0;
  if (scheme !== 0) fail(`part ${slot} is compressed by scheme ${scheme}`, "postscript");
  if (table.has(4)) fail(`part ${slot} is encrypted`, "postscript");
  return { offset, length };
}

/** Compression and encryption schemes are reserved: no writer uses them. */
function refuseSchemes(footer: FlatTable): void {
  if (footer.count(3) > 0) fail("its segments may be compressed as a whole", "footer");
  if (footer.count(4) > 0) fail("its segments may be encrypted", "footer");
}

function idsOf(footer: FlatTable, slot: number): string[] {
  return footer.tables(slot).map((spec) => spec.text(0) ?? fail("an encoding has no id", "footer"));
}

// law vortex/segmentsOf: vortex/file/container
function segmentsOf(footer: FlatTable, size: number): ByteRange[] {
  let before = 0;
  return footer.structs(2, 16).map((spec, i) => {
    const offset = spec.getUint32(0, true) + spec.getUint32(4, true) * 2 ** 32;
    const length = spec.getUint32(8, true);
    if (offset < before) fail(`segment ${i} begins at ${offset}, before the previous one`, "footer");
    if (offset + length > size) fail(`segment ${i} ends at ${offset + length} of ${size} bytes`, "footer");
    if (spec.getUint8(12) > maxAlignment) fail(`segment ${i} is aligned to 2^${spec.getUint8(12)}`, "footer");
    if (spec.getUint8(13) !== 0 || spec.getUint16(14, true) !== 0) {
      fail(`segment ${i} is compressed or encrypted as a whole`, "footer");
    }
    before = offset;
    return { offset, length };
  });
}

// law vortex/layoutOf: vortex/file/container
function layoutOf(table: FlatTable, ids: readonly string[], segmentCount: number, depth: number): RawLayout {
  if (depth === 0) table.fail("it is nested more deeply than the limit allows");
  const number = table.u16(0);
  const segments = table.u32s(4);
  const wrong = segments.find((segment) => segment >= segmentCount);
  if (wrong !== undefined) table.fail(`a node is in segment ${wrong} of ${segmentCount}`);
  return {
    id: ids[number] ?? table.fail(`a node has layout ${number} of ${ids.length}`),
    rows: table.u64(1),
    metadata: table.bytes(2) ?? noBytes,
    children: table.tables(3).map((child) => layoutOf(child, ids, segmentCount, depth - 1)),
    segments,
  };
}
