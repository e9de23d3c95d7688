/**
 * Rows of a layout: which segments hold them, and their decoded elements.
 *
 * @module
 */
import { openAll } from "../open_nodes.ts";
import { validityOf } from "../bits.ts";
import type { CanonicalArray } from "../canonical.ts";
import { DecodeContext } from "../decode_context.ts";
import type { VortexDType } from "../dtype.ts";
import { rootNode } from "../encoded_node.ts";
import { checkedCodes, dictionaryOf } from "../encodings/composed.ts";
import { placeAt, VortexError } from "../error.ts";
import { concatOf } from "../ops/concat.ts";
import { zeros } from "../ops/fill.ts";
import { sliceOf } from "../ops/slice.ts";
import { listsOf } from "../encodings/nested.ts";
import type { ArrayHome } from "../vortex_array.ts";
import { readArray } from "../wire/array_flatbuffer.ts";
import { type Allocate, ownBytes } from "../wire/source.ts";
import {
  chunkAt,
  type ChunkedLayout,
  type DictLayout,
  type FlatLayout,
  type Layout,
  type ListLayout,
  type StructLayout,
} from "./layout.ts";

/** What readers need besides layouts. */
export interface ScanHome extends ArrayHome {
  readonly arrayIds: readonly string[];
  /** The bytes of a flat layout's segment. Called once per layout. */
  readonly segment: (layout: FlatLayout) => Promise<Uint8Array>;
}

/** Reads rows of a column, in increasing order: everything before the rows read last is dropped. */
export interface ColumnReader {
  readonly dtype: VortexDType;
  /** Calls `add` for each layout whose segment the rows need, in the order in which the segments are read. */
  segments(start: number, end: number, add: (layout: FlatLayout) => void): void;
  read(start: number, end: number): Promise<CanonicalArray>;
}

/** A reader for a layout. @param fields the wanted fields of a struct at the root. Default: all */
export function readerOf(layout: Layout, home: ScanHome, fields?: readonly number[]): ColumnReader {
  switch (layout.kind) {
    case "flat":
      return new FlatReader(layout, home);
    case "chunked":
      return new ChunkedReader(layout, home, fields);
    case "struct":
      return new StructReader(layout, home, fields);
    case "dict":
      return new DictReader(layout, home);
    case "zoned":
      return readerOf(layout.data, home, fields);
    case "list":
      return new ListReader(layout, home);
  }
}

function allocatorOf({ session, limits }: ArrayHome): Allocate {
  return new DecodeContext(session, limits).allocateForAll;
}

/** A column that the first read decodes whole, and the last one forgets. */
abstract class WholeReader<Layout extends FlatLayout | ListLayout> implements ColumnReader {
  readonly dtype: VortexDType;
  protected readonly layout: Layout;
  protected readonly home: ScanHome;
  #array: Promise<CanonicalArray> | null = null;

  constructor(layout: Layout, home: ScanHome) {
    this.dtype = layout.dtype;
    this.layout = layout;
    this.home = home;
  }

  abstract segments(start: number, end: number, add: (layout: FlatLayout) => void): void;

  protected abstract decode(): Promise<CanonicalArray>;

  async read(start: number, end: number): Promise<CanonicalArray> {
    if (end === start) return zeros(this.dtype, 0, allocatorOf(this.home));
    this.#array ??= this.decode();
    const array = await this.#array;
    if (end === this.layout.rows) this.#array = null; // nothing reads it again
    return sliceOf(array, start, end, allocatorOf(this.home));
  }
}

class FlatReader extends WholeReader<FlatLayout> {
  override segments(start: number, end: number, add: (layout: FlatLayout) => void): void {
    if (end > start) add(this.layout);
  }

  protected override async decode(): Promise<CanonicalArray> {
    const { segment, tree, dtype, rows, path } = this.layout;
    const { session, limits, arrayIds } = this.home;
    const bytes = ownBytes(await this.home.segment(this.layout));
    try {
      const raw = readArray(bytes, arrayIds, limits, tree ?? undefined);
      const root = rootNode(raw, dtype, rows);
      openAll(session, root);
      return new DecodeContext(session, limits).decode(root);
    } catch (error) {
      if (!(error instanceof VortexError)) throw error;
      throw new VortexError(error.path, `Cannot read segment ${segment} of ${path}: ${error.message}`, {
        cause: error,
      });
    }
  }
}

class ChunkedReader implements ColumnReader {
  readonly dtype: VortexDType;
  readonly #layout: ChunkedLayout;
  readonly #home: ScanHome;
  readonly #fields: readonly number[] | undefined;
  /** Readers of chunks from which rows were requested, except chunks already passed. */
  readonly #readers = new Map<number, ColumnReader>();

  constructor(layout: ChunkedLayout, home: ScanHome, fields: readonly number[] | undefined) {
    this.#layout = layout;
    this.#home = home;
    this.#fields = fields;
    this.dtype = projected(layout.dtype, fields);
  }

  /** The chunks that hold the rows, and the range of rows within each. */
  *#parts(start: number, end: number): Generator<readonly [reader: ColumnReader, start: number, end: number]> {
    const { chunks, starts } = this.#layout;
    for (let i = chunkAt(starts, start); i < chunks.length; i++) {
      const [chunk, first, last] = [chunks[i], starts[i] ?? 0, starts[i + 1] ?? 0];
      if (chunk === undefined || first >= end) break;
      if (first === last) continue;
      const reader = this.#readers.get(i) ?? readerOf(chunk, this.#home, this.#fields);
      this.#readers.set(i, reader);
      yield [reader, Math.max(0, start - first), Math.min(last, end) - first];
    }
  }

  segments(start: number, end: number, add: (layout: FlatLayout) => void): void {
    if (end === start) return;
    for (const [reader, from, to] of this.#parts(start, end)) reader.segments(from, to, add);
  }

  async read(start: number, end: number): Promise<CanonicalArray> {
    const pieces: CanonicalArray[] = [];
    if (end > start) {
      for (const [reader, from, to] of this.#parts(start, end)) pieces.push(await reader.read(from, to));
    }
    // Nothing will read the arrays of chunks that end here, even if a filter skipped the last rows.
    for (const i of this.#readers.keys()) if ((this.#layout.starts[i + 1] ?? 0) <= end) this.#readers.delete(i);
    return concatOf(this.dtype, pieces, allocatorOf(this.#home));
  }
}

/** A struct's dtype with only some of its fields. */
export function projected(dtype: VortexDType, fields: readonly number[] | undefined): VortexDType {
  if (fields === undefined || dtype.kind !== "struct") return dtype;
  const pick = <T>(all: readonly T[]): T[] => fields.flatMap((i) => all[i] ?? []);
  return { ...dtype, names: fields.map((i) => dtype.names[i] ?? ""), fields: pick(dtype.fields) };
}

class StructReader implements ColumnReader {
  readonly dtype: VortexDType;
  readonly #validity: ColumnReader | null;
  readonly #fields: readonly ColumnReader[];
  readonly #home: ScanHome;

  constructor(layout: StructLayout, home: ScanHome, fields: readonly number[] | undefined) {
    this.dtype = projected(layout.dtype, fields);
    this.#home = home;
    this.#validity = layout.validity === null ? null : readerOf(layout.validity, home);
    const wanted = fields ?? layout.fields.map((_, i) => i);
    this.#fields = wanted.flatMap((i) => layout.fields[i] ?? []).map((field) => readerOf(field, home));
  }

  segments(start: number, end: number, add: (layout: FlatLayout) => void): void {
    this.#validity?.segments(start, end, add);
    for (const field of this.#fields) field.segments(start, end, add);
  }

  async read(start: number, end: number): Promise<CanonicalArray> {
    const length = end - start;
    const valid = await this.#validity?.read(start, end) ?? null;
    const fields: CanonicalArray[] = [];
    for (const field of this.#fields) fields.push(await field.read(start, end));
    const { dtype } = this;
    if (dtype.kind !== "struct") throw new TypeError(`A struct has the dtype ${dtype.kind}`);
    return { kind: "struct", dtype, length, validity: validityOf(valid, allocatorOf(this.#home)), fields };
  }
}

class DictReader implements ColumnReader {
  readonly dtype: VortexDType;
  readonly #layout: DictLayout;
  readonly #home: ScanHome;
  readonly #codes: ColumnReader;
  readonly #valuesReader: ColumnReader;
  #values: Promise<CanonicalArray> | null = null;

  constructor(layout: DictLayout, home: ScanHome) {
    this.dtype = layout.dtype;
    this.#layout = layout;
    this.#home = home;
    this.#codes = readerOf(layout.codes, home);
    this.#valuesReader = readerOf(layout.values, home);
  }

  segments(start: number, end: number, add: (layout: FlatLayout) => void): void {
    if (end === start) return;
    this.#valuesReader.segments(0, this.#layout.values.rows, add);
    this.#codes.segments(start, end, add);
  }

  async read(start: number, end: number): Promise<CanonicalArray> {
    if (end === start) return zeros(this.dtype, 0, allocatorOf(this.#home));
    this.#values ??= this.#valuesReader.read(0, this.#layout.values.rows);
    const values = await this.#values;
    const codes = await this.#codes.read(start, end);
    const { session, limits } = this.#home;
    const [place, context] = [placeAt(this.#layout.path), new DecodeContext(session, limits)];
    if (codes.kind !== "primitive") return place.fail(`Its codes are ${codes.kind}`);
    const checked = checkedCodes(codes, values.length, place, context);
    return dictionaryOf(this.dtype, checked, values, place, false, context);
  }
}

class ListReader extends WholeReader<ListLayout> {
  override segments(start: number, end: number, add: (layout: FlatLayout) => void): void {
    if (end === start) return;
    const { elements, offsets, validity } = this.layout;
    readerOf(offsets, this.home).segments(0, offsets.rows, add);
    readerOf(elements, this.home).segments(0, elements.rows, add);
    if (validity !== null) readerOf(validity, this.home).segments(0, validity.rows, add);
  }

  protected override async decode(): Promise<CanonicalArray> {
    const { dtype, rows, elements, offsets, validity, path } = this.layout;
    const { session, limits } = this.home;
    const context = new DecodeContext(session, limits);
    const at = await readerOf(offsets, this.home).read(0, offsets.rows);
    const inner = await readerOf(elements, this.home).read(0, elements.rows);
    const valid = validity === null ? null : await readerOf(validity, this.home).read(0, rows);
    const place = placeAt(path);
    if (at.kind !== "primitive") return place.fail(`Its offsets are ${at.kind}`);
    return listsOf(dtype, at, inner, validityOf(valid, context.allocateForAll), place, context);
  }
}
