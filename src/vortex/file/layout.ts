/**
 * The layout tree with dtypes: which rows of which columns are in which segment. Nothing is read here.
 *
 * @module
 */
import { boolDType, type DTypeOf, primitiveDType, type VortexDType } from "../dtype.ts";
import { type Fail, VortexError } from "../error.ts";
import { ptypeOfCode } from "../wire/dtype_flatbuffer.ts";
import { ProtoMessage } from "../wire/protobuf.ts";
import type { Bytes } from "../wire/source.ts";
import type { RawLayout } from "./container.ts";
import { legacyZones, type Zones, zonesOf } from "./zones.ts";

interface Node {
  readonly dtype: VortexDType;
  readonly rows: number;
  /** Where the node is: `layout.a[2]`. */
  readonly path: string;
}

/** An array in one segment. */
export interface FlatLayout extends Node {
  readonly kind: "flat";
  readonly segment: number;
  /** The array's tree, if it is also stored outside the segment. */
  readonly tree: Bytes | null;
}

/** Rows in chunks. */
export interface ChunkedLayout extends Node {
  readonly kind: "chunked";
  readonly chunks: readonly Layout[];
  /** The first row of each chunk, and the total number of rows. */
  readonly starts: readonly number[];
}

/** The first chunk that ends after a row. @param starts where each chunk begins, and where the last one ends */
export function chunkAt(starts: readonly number[], row: number): number {
  let [low, high] = [0, starts.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((starts[middle + 1] ?? 0) > row) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Columns. */
export interface StructLayout extends Node {
  readonly kind: "struct";
  readonly dtype: DTypeOf<"struct">;
  readonly validity: Layout | null;
  readonly fields: readonly Layout[];
}

/** Values stored once for all rows, and a code per row that selects one of them. */
export interface DictLayout extends Node {
  readonly kind: "dict";
  readonly values: Layout;
  readonly codes: Layout;
}

/** Rows with statistics per zone. */
export interface ZonedLayout extends Node {
  readonly kind: "zoned";
  readonly data: Layout;
  /** Null if they cannot be interpreted. */
  readonly zones: Zones | null;
}

/** Lists: their elements have separate rows. */
export interface ListLayout extends Node {
  readonly kind: "list";
  readonly dtype: DTypeOf<"list">;
  readonly elements: Layout;
  readonly offsets: Layout;
  readonly validity: Layout | null;
}

/** A node of the tree. */
export type Layout = FlatLayout | ChunkedLayout | StructLayout | DictLayout | ZonedLayout | ListLayout;

/** How a layout is read. */
type Read = (raw: RawLayout, node: Node, fail: Fail) => Layout;

// law vortex/typedLayout: vortex/file/container, vortex/file/old_files
/**
 * Gives the nodes of a layout tree their dtypes.
 *
 * @throws {VortexError} if the tree does not fit the dtype, or has an unknown layout
 */
export function typedLayout(raw: RawLayout, dtype: VortexDType, path = "layout"): Layout {
  const fail = (why: string): never => {
    throw new VortexError(path, `The layout ${raw.id} ${why}`);
  };
  const read = layouts[raw.id];
  if (read === undefined) return fail("is unknown");
  return read(raw, { dtype, rows: raw.rows, path }, fail);
}

/** A child, which must have `rows` rows, or any number if that is null. */
function childOf(raw: RawLayout, index: number, dtype: VortexDType, rows: number | null, path: string): Layout {
  const child = raw.children[index];
  if (child === undefined) throw new VortexError(path, `The layout ${raw.id} has no child ${index}`);
  if (rows !== null && child.rows !== rows) {
    throw new VortexError(path, `Child ${index} of ${raw.id} has ${child.rows} rows, expected ${rows}`);
  }
  return typedLayout(child, dtype, path);
}

function expectCounts(
  raw: RawLayout,
  children: readonly [least: number, most: number],
  segments: number,
  fail: Fail,
): void {
  const { length } = raw.children;
  if (length < children[0] || length > children[1]) fail(`has ${length} children, expected ${children[0]}`);
  if (raw.segments.length !== segments) fail(`has ${raw.segments.length} segments, expected ${segments}`);
}

const layouts: Readonly<Record<string, Read>> = {
  "vortex.flat": (raw, node, fail) => {
    expectCounts(raw, [0, 0], 1, fail);
    const { metadata, segments: [segment = 0] } = raw;
    const tree = metadata.length === 0
      ? null
      : new ProtoMessage(metadata, node.path, "metadata of a flat layout").bytes(1);
    return { ...node, kind: "flat", segment, tree };
  },

  "vortex.chunked": (raw, node, fail) => {
    expectCounts(raw, [0, Infinity], 0, fail);
    const chunks = raw.children.map((_, i) => childOf(raw, i, node.dtype, null, `${node.path}[${i}]`));
    const starts = [0];
    for (const { rows } of chunks) starts.push((starts.at(-1) ?? 0) + rows);
    if (starts.at(-1) !== node.rows) fail(`has ${starts.at(-1)} rows in its chunks, expected ${node.rows}`);
    return { ...node, kind: "chunked", chunks, starts };
  },

  "vortex.struct": (raw, node, fail) => {
    const { dtype, rows, path } = node;
    if (dtype.kind !== "struct") return fail(`cannot have the dtype ${dtype.kind}`);
    const first = dtype.nullable ? 1 : 0;
    const count = dtype.fields.length + first;
    expectCounts(raw, [count, count], 0, fail);
    return {
      ...node,
      dtype,
      kind: "struct",
      validity: first === 0 ? null : childOf(raw, 0, boolDType, rows, `${path}.validity`),
      fields: dtype.fields.map((field, i) => childOf(raw, first + i, field, rows, `${path}.${dtype.names[i]}`)),
    };
  },

  "vortex.dict": (raw, node, fail) => {
    expectCounts(raw, [2, 2], 0, fail);
    const message = new ProtoMessage(raw.metadata, node.path, "metadata of a dict layout");
    const nullable = message.bool(2) ?? node.dtype.nullable;
    const codes = primitiveDType(ptypeOfCode(message.u32(1), node.path, "codes"), nullable);
    return {
      ...node,
      kind: "dict",
      values: childOf(raw, 0, node.dtype, null, `${node.path}.values`),
      codes: childOf(raw, 1, codes, node.rows, `${node.path}.codes`),
    };
  },

  "vortex.zoned": (raw, node, fail) => zoned(raw, node, fail, zonesOf),
  "vortex.stats": (raw, node, fail) => zoned(raw, node, fail, legacyZones),

  "vortex.list": (raw, node, fail) => {
    const { dtype, rows, path } = node;
    if (dtype.kind !== "list") return fail(`cannot have the dtype ${dtype.kind}`);
    const count = dtype.nullable ? 3 : 2;
    expectCounts(raw, [count, count], 0, fail);
    const message = new ProtoMessage(raw.metadata, path, "metadata of a list layout");
    const offsets = primitiveDType(ptypeOfCode(message.u32(1), path, "offsets"));
    return {
      ...node,
      dtype,
      kind: "list",
      elements: childOf(raw, 0, dtype.element, null, `${path}.elements`),
      offsets: childOf(raw, 1, offsets, rows + 1, `${path}.offsets`),
      validity: dtype.nullable ? childOf(raw, 2, boolDType, rows, `${path}.validity`) : null,
    };
  },

  // Indexes only serve searches: the rows are the first child.
  "vortex.indexed": (raw, { dtype, rows, path }, fail) => {
    if (raw.children.length === 0) fail("has no child");
    return childOf(raw, 0, dtype, rows, path);
  },
};

function zoned(
  raw: RawLayout,
  node: Node,
  fail: Fail,
  read: (metadata: Bytes, dtype: VortexDType, rows: number) => Omit<Zones, "table"> | null,
): ZonedLayout {
  expectCounts(raw, [2, 2], 0, fail);
  const data = childOf(raw, 0, node.dtype, node.rows, node.path);
  const zones = read(raw.metadata, node.dtype, node.rows);
  if (zones === null) return { ...node, kind: "zoned", data, zones: null };
  const { dtype, length } = zones;
  if (raw.children[1]?.rows !== Math.ceil(node.rows / length)) return { ...node, kind: "zoned", data, zones: null };
  const table = childOf(raw, 1, dtype, null, `${node.path}.zones`);
  return { ...node, kind: "zoned", data, zones: { ...zones, table } };
}
