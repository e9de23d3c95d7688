/**
 * Files written as the format specifies, from any tree of layouts, valid or not. Flatbuffers are written front to back
 * here, a table before what it refers to: no code is shared with the product's writer.
 *
 * @module
 */
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import { hostBytesOf, type RawNode } from "../../../src/vortex/raw_node.ts";
import { writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";
import { joined, proto } from "./nodes.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** A value of a flatbuffer. */
export type Flat =
  | { readonly u8: number }
  | { readonly u16: number }
  | { readonly u32: number }
  | { readonly u64: number | bigint }
  | { readonly text: string }
  | { readonly bytes: Uint8Array }
  | { readonly u16s: readonly number[] }
  | { readonly u32s: readonly number[] }
  | { readonly structs: readonly Uint8Array[] }
  | { readonly tables: readonly (readonly (Flat | null)[])[] }
  | { readonly table: readonly (Flat | null)[] };

/** Writes a flatbuffer whose root is a table of these fields. */
export function flatbuffer(root: readonly (Flat | null)[]): Bytes {
  let bytes = new Uint8Array(1024);
  let view = new DataView(bytes.buffer);
  let used = 0;
  const reserve = (size: number, align: number): number => {
    const at = Math.ceil(used / align) * align;
    used = at + size;
    if (used > bytes.length) {
      const grown = new Uint8Array(2 * used);
      grown.set(bytes);
      bytes = grown;
      view = new DataView(grown.buffer);
    }
    return at;
  };
  const refer = (from: number, to: number) => view.setUint32(from, to - from, true);
  const vector = (count: number, size: number, align: number): number => {
    reserve(0, align);
    const at = reserve(4 + size, align === 8 ? 4 : align); // the elements are aligned, not the count
    const start = align === 8 && (at + 4) % 8 !== 0 ? at + 4 : at;
    if (start !== at) reserve(4, 1);
    view.setUint32(start, count, true);
    return start;
  };
  const write = (value: Flat): number => {
    if ("table" in value) return writeTable(value.table);
    if ("text" in value) {
      const text = new TextEncoder().encode(value.text);
      const at = vector(text.length, text.length + 1, 4);
      bytes.set(text, at + 4);
      return at;
    }
    if ("bytes" in value) {
      const at = vector(value.bytes.length, value.bytes.length, 4);
      bytes.set(value.bytes, at + 4);
      return at;
    }
    if ("u16s" in value) {
      const at = vector(value.u16s.length, 2 * value.u16s.length, 4);
      value.u16s.forEach((one, i) => view.setUint16(at + 4 + 2 * i, one, true));
      return at;
    }
    if ("u32s" in value) {
      const at = vector(value.u32s.length, 4 * value.u32s.length, 4);
      value.u32s.forEach((one, i) => view.setUint32(at + 4 + 4 * i, one, true));
      return at;
    }
    if ("structs" in value) {
      const size = value.structs[0]?.length ?? 0;
      const at = vector(value.structs.length, size * value.structs.length, 8);
      value.structs.forEach((one, i) => bytes.set(one, at + 4 + size * i));
      return at;
    }
    if ("tables" in value) {
      const at = vector(value.tables.length, 4 * value.tables.length, 4);
      value.tables.forEach((fields, i) => refer(at + 4 + 4 * i, writeTable(fields)));
      return at;
    }
    throw new TypeError("A number stands in its table");
  };
  const writeTable = (fields: readonly (Flat | null)[]): number => {
    const vtable = reserve(4 + 2 * fields.length, 4);
    const at = reserve(8 + 8 * fields.length, 8); // 8 bytes for each field, whatever its type
    view.setInt32(at, at - vtable, true);
    view.setUint16(vtable, 4 + 2 * fields.length, true);
    view.setUint16(vtable + 2, 8 + 8 * fields.length, true);
    fields.forEach((field, i) => {
      if (field === null) return;
      const place = at + 8 + 8 * i;
      view.setUint16(vtable + 4 + 2 * i, place - at, true);
      if ("u8" in field) view.setUint8(place, field.u8);
      else if ("u16" in field) view.setUint16(place, field.u16, true);
      else if ("u32" in field) view.setUint32(place, field.u32, true);
      else if ("u64" in field) view.setBigUint64(place, BigInt(field.u64), true);
      else refer(place, write(field));
    });
    return at;
  };
  reserve(4, 4);
  refer(0, writeTable(root));
  return bytes.slice(0, Math.ceil(used / 8) * 8);
}

/** A layout. */
export interface LaidOut {
  /** Without `vortex.`. */
  readonly id: string;
  readonly rows: number;
  readonly metadata?: Uint8Array;
  readonly children?: readonly LaidOut[];
  /** Indices of segments. */
  readonly segments?: readonly number[];
}

/** The location and properties of a segment. */
export interface SegmentSpec {
  readonly offset: number;
  readonly length: number;
  readonly alignment?: number;
  readonly compression?: number;
  readonly encryption?: number;
}

/** The contents of the end of a file. */
export interface FileEnd {
  readonly dtype: VortexDType | null;
  readonly layout: LaidOut;
  readonly segments: readonly SegmentSpec[];
  /** Ids of array encodings, in the order of their numbers. */
  readonly arrayIds: readonly string[];
  /** A flatbuffer. */
  readonly statistics?: Uint8Array;
  readonly version?: number;
  /** Changes the fields of the postscript. */
  readonly postscript?: (fields: (Flat | null)[]) => void;
  /** Changes the fields of the footer. */
  readonly footer?: (fields: (Flat | null)[]) => void;
}

/** The end of a file, which begins at `start`. */
export function fileEnd(start: number, end: FileEnd): Bytes {
  const ids: string[] = [];
  const layoutFields = ({ id, rows, metadata, children = [], segments = [] }: LaidOut): (Flat | null)[] => {
    if (!ids.includes(id)) ids.push(id);
    return [
      { u16: ids.indexOf(id) },
      { u64: rows },
      metadata === undefined ? null : { bytes: metadata },
      { tables: children.map(layoutFields) },
      { u32s: segments },
    ];
  };
  const layout = flatbuffer(layoutFields(end.layout));
  const footer: (Flat | null)[] = [
    { tables: end.arrayIds.map((id) => [{ text: id }]) },
    { tables: ids.map((id) => [{ text: `vortex.${id}` }]) },
    { structs: end.segments.map(specBytes) },
  ];
  end.footer?.(footer);
  const parts = [
    end.dtype === null ? null : writeDType(end.dtype),
    layout,
    end.statistics === undefined ? null : Uint8Array.from(end.statistics),
    flatbuffer(footer),
  ];
  const pieces: Bytes[] = [];
  let at = start;
  const fields: (Flat | null)[] = parts.map((part) => {
    if (part === null) return null;
    const padding = new Uint8Array((8 - at % 8) % 8);
    const offset = at + padding.length;
    pieces.push(padding, part);
    at = offset + part.length;
    return { table: [{ u64: offset }, { u32: part.length }, { u8: 3 }] };
  });
  end.postscript?.(fields);
  const postscript = flatbuffer(fields);
  const tail = new Uint8Array(8);
  const view = new DataView(tail.buffer);
  view.setUint16(0, end.version ?? 1, true);
  view.setUint16(2, postscript.length, true);
  tail.set(new TextEncoder().encode("VTXF"), 4);
  return joined(...pieces, postscript, tail);
}

function specBytes({ offset, length, alignment = 6, compression = 0, encryption = 0 }: SegmentSpec): Bytes {
  const view = new DataView(new ArrayBuffer(16));
  view.setBigUint64(0, BigInt(offset), true);
  view.setUint32(8, length, true);
  view.setUint8(12, alignment);
  view.setUint8(13, compression);
  view.setUint16(14, encryption, true);
  return new Uint8Array(view.buffer);
}

/** The bytes of a segment: buffers aligned to 8 bytes, the tree, its size. */
export function segmentOf(root: RawNode, idNumber: (id: string) => number): { body: Bytes; tree: Bytes } {
  const pieces: Bytes[] = [];
  const structs: Bytes[] = [];
  let at = 0;
  const fieldsOf = ({ id, metadata, buffers, children }: RawNode): (Flat | null)[] => {
    const numbers = (typeof buffers === "number" ? [] : buffers).map((buffer) => {
      const bytes = hostBytesOf(buffer);
      const padding = (8 - at % 8) % 8;
      pieces.push(new Uint8Array(padding), bytes);
      at += padding + bytes.length;
      const view = new DataView(new ArrayBuffer(8));
      view.setUint16(0, padding, true);
      view.setUint8(2, 3);
      view.setUint32(4, bytes.length, true);
      return structs.push(new Uint8Array(view.buffer)) - 1;
    });
    return [
      { u16: idNumber(id) },
      metadata.length === 0 ? null : { bytes: metadata },
      { tables: children.map(fieldsOf) },
      { u16s: numbers },
    ];
  };
  const fields = fieldsOf(root);
  const tree = flatbuffer([{ table: fields }, { structs }]);
  pieces.push(new Uint8Array((8 - at % 8) % 8));
  const size = new Uint8Array(4);
  new DataView(size.buffer).setUint32(0, tree.length, true);
  return { body: joined(...pieces, tree, size), tree };
}

/** Collects arrays as segments, and writes the file. */
export class FileWriter {
  readonly #segments: Bytes[] = [];
  readonly #arrayIds: string[] = [];

  readonly #number = (id: string): number => {
    if (!this.#arrayIds.includes(id)) this.#arrayIds.push(id);
    return this.#arrayIds.indexOf(id);
  };

  /** A layout of an array, in a segment of its own. @param isInline whether to store its tree in the layout, too */
  flat(root: RawNode, rows: number, isInline = false): LaidOut {
    const { body, tree } = segmentOf(root, this.#number);
    const segments = [this.#segments.push(body) - 1];
    return { id: "flat", rows, segments, ...isInline && { metadata: proto([1, tree]) } };
  }

  /** The whole file. */
  finish(end: Omit<FileEnd, "segments" | "arrayIds">): Bytes {
    const pieces: Bytes[] = [new TextEncoder().encode("VTXF")];
    let at = 4;
    const segments = this.#segments.map((body): SegmentSpec => {
      const padding = new Uint8Array((64 - at % 64) % 64);
      const offset = at + padding.length;
      pieces.push(padding, body);
      at = offset + body.length;
      return { offset, length: body.length };
    });
    return joined(...pieces, fileEnd(at, { ...end, segments, arrayIds: this.#arrayIds }));
  }
}
