/**
 * The structure of a file, as data and as lines: for people and for programs that print.
 *
 * @module
 */
import { showDType, type VortexDType } from "../dtype.ts";
import { VortexError } from "../error.ts";
import { type EncodingTree, readEncodings } from "../wire/array_flatbuffer.ts";
import { ownBytes } from "../wire/source.ts";
import type { FlatLayout, Layout } from "./layout.ts";
import type { ScannedFile } from "./scan.ts";

/** A part of a file, and what it consists of. */
export interface VortexLayout {
  /** The column's name, or the part's role in its parent: `root`, `zones`, `codes`, the number of a chunk. */
  readonly name: string;
  /** How it is laid out. */
  readonly kind: "flat" | "chunked" | "struct" | "dict" | "zoned" | "list";
  /** Dtype of its rows. */
  readonly dtype: VortexDType;
  /** Number of rows. */
  readonly rows: number;
  /** Bytes of its segments. */
  readonly bytes: number;
  /** Rows per zone, if there are zones with statistics. */
  readonly zoneRows?: number;
  /** Encodings of an array in one segment; only from `VortexFile.describe`, and only for a column's first piece. */
  readonly encodings?: EncodingTree;
  /** Its parts. */
  readonly children: readonly VortexLayout[];
}

// law vortex/layoutTree: vortex/file/describe
/** The layout tree of a file. @param encodings those that are known */
export function layoutTree(
  { layout, segments }: Pick<ScannedFile, "layout" | "segments">,
  encodings: ReadonlyMap<Layout, EncodingTree> = new Map(),
): VortexLayout {
  const of = (one: Layout, name: string): VortexLayout => {
    const { kind, dtype, rows } = one;
    const children = childrenOf(one).map(([inner, child]) => of(child, inner));
    const bytes = kind === "flat" ? segments[one.segment]?.length ?? 0 : sum(children.map(({ bytes }) => bytes));
    const known = encodings.get(one);
    return {
      name,
      kind,
      dtype,
      rows,
      bytes,
      ...kind === "zoned" && one.zones !== null && { zoneRows: one.zones.length },
      ...known !== undefined && { encodings: known },
      children,
    };
  };
  return of(layout, "root");
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
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

/** Bytes of the first read, from the end of a segment: trees are rarely larger. */
const firstRead = 4096;

/** The layout tree with the encodings of each column's first piece. */
export async function describedTree(file: ScannedFile): Promise<VortexLayout> {
  const pieces: FlatLayout[] = [];
  const look = (layout: Layout): void => {
    if (layout.kind === "flat") pieces.push(layout);
    const [, ...others] = layout.kind === "chunked" ? layout.chunks : [];
    for (const [, child] of childrenOf(layout)) if (!others.includes(child)) look(child);
  };
  look(file.layout);
  const known = new Map<Layout, EncodingTree>();
  for (const piece of pieces) known.set(piece, await encodingsOf(file, piece));
  return layoutTree(file, known);
}

async function encodingsOf({ reader, segments, arrayIds, home }: ScannedFile, piece: FlatLayout) {
  const { tree, segment, path } = piece;
  const { offset, length } = segments[segment] ?? { offset: 0, length: 0 };
  const last = async (bytes: number) => ownBytes(await reader.read(offset + length - bytes, bytes));
  if (tree !== null) return readEncodings(tree, arrayIds, home.limits);
  if (length < 4) throw new VortexError("$", `Cannot read segment ${segment} of ${path}: it has ${length} bytes`);
  const end = await last(Math.min(length, firstRead));
  const size = new DataView(end.buffer, end.byteOffset + end.length - 4, 4).getUint32(0, true);
  if (size > length - 4) {
    throw new VortexError("$", `Cannot read segment ${segment} of ${path}: its nodes take ${size} of ${length} bytes`);
  }
  const whole = size + 4 <= end.length ? end : await last(size + 4);
  return readEncodings(whole.slice(whole.length - 4 - size, whole.length - 4), arrayIds, home.limits);
}

/** An array's encodings on one line: `fastlanes.for(fastlanes.bitpacked)`. */
export function showEncodings({ id, children }: EncodingTree): string {
  return children.length === 0 ? id : `${id}(${children.map(showEncodings).join(", ")})`;
}

/** The tree, one part per line. Chunks are counted, and only the first is shown. */
export function layoutLines(layout: VortexLayout): string[] {
  const lines: string[] = [];
  const write = ({ name, kind, dtype, rows, bytes, zoneRows, encodings, children }: VortexLayout, indent: string) => {
    const zones = zoneRows === undefined ? "" : `, zones of ${zoneRows} rows`;
    const chunks = kind === "chunked" ? `, ${children.length} chunks` : "";
    const what = encodings === undefined ? "" : `, ${showEncodings(encodings)}`;
    // A struct's fields follow it, and zone tables are all alike.
    const of = kind === "struct" || name === "zones" ? "" : ` of ${showDType(dtype)}`;
    lines.push(`${indent}${name}: ${kind}, ${rows} rows${of}, ${bytes} bytes${zones}${chunks}${what}`);
    for (const child of kind === "chunked" ? children.slice(0, 1) : children) write(child, `${indent}  `);
  };
  write(layout, "");
  return lines;
}
