/**
 * PyVortex as the judge, in a separate process, and what it judges: decoded arrays row by row.
 *
 * @module
 */
import { openAll } from "../../../src/vortex/open_nodes.ts";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { CanonicalArray } from "../../../src/vortex/canonical.ts";
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import { DecodeContext, type Kept } from "../../../src/vortex/decode_context.ts";
import { rootNode } from "../../../src/vortex/encoded_node.ts";
import { limitsOf } from "../../../src/vortex/limits.ts";
import { hostBytesOf, type RawNode } from "../../../src/vortex/raw_node.ts";
import { VortexSession } from "../../../src/vortex/session.ts";
import { readArray } from "../../../src/vortex/wire/array_flatbuffer.ts";
import { readDType, writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";
import { messagesOf } from "../../../src/vortex/wire/ipc_message.ts";
import { patiently } from "../child.ts";
import { alignmentOf } from "./nodes.ts";
import { needs } from "../needs.ts";
import { findPythonOrSystem } from "../python.ts";

const python = findPythonOrSystem("vortex-data>=0.93", "flatbuffers", "pyarrow", "numpy");

/** The first arguments of a test that queries PyVortex, and is skipped where there is none. */
export function withWheel(
  title: string,
): [name: string, options: { readonly skip: boolean; readonly timeout: number }] {
  const [name, options] = needs(typeof python === "string" ? python : null, title);
  return [name, { ...options, ...patiently }];
}

const script = fileURLToPath(new URL("wheel_judge.py", import.meta.url));

function ask<T>(question: unknown, env: Readonly<Record<string, string>> = {}): T {
  if (typeof python === "string") throw new Error(python);
  const { stdout, stderr, status } = spawnSync(python.executable, [script], {
    input: JSON.stringify(question) + "\n",
    maxBuffer: 2 ** 30,
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

/** An array to be judged: its nodes, and the dtype and length to read them as. */
export interface BuiltArray {
  readonly dtype: VortexDType;
  readonly length: number;
  readonly tree: RawNode;
}

/** PyVortex's verdict: the rows, or why it refuses. */
export type Verdict = { readonly rows: string } | { readonly error: string };

/** Judges many arrays at once: the process takes a second to start. */
export function judge(arrays: readonly BuiltArray[]): readonly Verdict[] {
  const built = arrays.map(({ dtype, length, tree }) => ({
    dtype: base64(writeDType(dtype)),
    length,
    tree: asJson(tree),
  }));
  // Enables vortex.patched, and changes how PyVortex compresses: not to be set where it is asked to compress.
  return ask({ built }, { VORTEX_EXPERIMENTAL_PATCHED_ARRAY: "1" });
}

interface JsonTree {
  readonly id: string;
  readonly metadata: string;
  readonly buffers: readonly (readonly [bytes: string, alignment: number])[];
  readonly children: readonly JsonTree[];
}

function asJson({ id, metadata, buffers, children }: RawNode): JsonTree {
  if (typeof buffers === "number") throw new TypeError("Buffers were only counted");
  const all = buffers.map((one) => {
    const bytes = hostBytesOf(one);
    return [base64(bytes), alignmentOf(bytes)] as const;
  });
  return { id, metadata: base64(metadata), buffers: all, children: children.map(asJson) };
}

/** A column that PyVortex has compressed. */
export interface CompressedColumn {
  /** A description of what was compressed. */
  readonly name: string;
  readonly array: BuiltArray;
  readonly rows: string;
}

/** Random columns as PyVortex compresses them. */
export function compressedColumns(seed: number, count: number): CompressedColumn[] {
  return columnsOf({ compressed: seed, count });
}

/** Random columns of text and numbers as PyVortex stores them in files. */
export function writtenColumns(seed: number, count: number): CompressedColumn[] {
  return columnsOf({ written: seed, count });
}

function columnsOf(question: unknown): CompressedColumn[] {
  const answers: readonly { name: string; array: string; dtype: string; rows: string }[] = ask(question);
  const limits = limitsOf();
  return answers.map(({ name, array, dtype: dtypeMessage, rows }) => {
    const [first] = messagesOf(unbase64(dtypeMessage));
    const [second] = messagesOf(unbase64(array));
    if (first?.kind !== "dtype" || second?.kind !== "array") throw new Error(`Not a dtype and an array: ${name}`);
    const dtype = readDType(first.body, "dtype", limits);
    const tree = readArray(second.body, second.ids, limits);
    return { name, array: { dtype, length: second.rowCount, tree }, rows };
  });
}

/** The ids of a tree's nodes. */
export function idsOf(tree: RawNode): string[] {
  return [tree.id, ...tree.children.flatMap(idsOf)];
}

/** Decodes as the product does: opens everything, then decodes. */
export function decodeTree(
  { dtype, length, tree }: BuiltArray,
  { bytes = 2 ** 30, keep = { dictionary: false, runEnd: false } }: {
    readonly bytes?: number;
    readonly keep?: Kept;
  } = {},
): CanonicalArray {
  const session = VortexSession.default();
  const root = rootNode(tree, dtype, length);
  openAll(session, root);
  const context = new DecodeContext(session, limitsOf({ bytes }), keep);
  return context.decodeKeeping(root);
}

// --- rows

/** An array's rows as the judge writes them. */
export function rowsOf(array: CanonicalArray): string {
  if (array.kind === "extension") return rowsOf({ ...array.storage, validity: array.validity } as CanonicalArray);
  const { length, validity } = array;
  const valid = (row: number) => validity === null || ((validity[row >> 3] ?? 0) >> (row & 7) & 1) === 1;
  if (array.kind === "varbinview") {
    return base64(Buffer.concat(Array.from({ length }, (_, row) => {
      const bytes = valid(row) ? textAt(array.views, array.data, row) : new Uint8Array(0);
      const head = new DataView(new ArrayBuffer(5));
      head.setUint8(0, valid(row) ? 1 : 0);
      head.setUint32(1, bytes.length, true);
      return Buffer.concat([new Uint8Array(head.buffer), bytes]);
    })));
  }
  const [width, valueAt] = fixedWidth(array);
  const out = new Uint8Array(length * (1 + width));
  for (let row = 0; row < length; row++) {
    if (!valid(row)) continue;
    out[row * (1 + width)] = 1;
    out.set(valueAt(row), row * (1 + width) + 1);
  }
  return base64(out);
}

/** The width of a row in bytes, and the bytes of each row. */
function fixedWidth(array: CanonicalArray): [width: number, valueAt: (row: number) => Uint8Array] {
  if (array.kind === "primitive") {
    const { values } = array;
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const width = values.BYTES_PER_ELEMENT;
    return [width, (row) => bytes.subarray(row * width, (row + 1) * width)];
  }
  if (array.kind === "bool") {
    const { bits, offset } = array;
    return [1, (row) => Uint8Array.of((bits[(offset + row) >> 3] ?? 0) >> ((offset + row) & 7) & 1)];
  }
  if (array.kind === "decimal") {
    const { bytes, width } = array;
    return [32, (row) => {
      const wide = new Uint8Array(32).fill((bytes[(row + 1) * width - 1] ?? 0) > 127 ? 255 : 0);
      wide.set(bytes.subarray(row * width, (row + 1) * width));
      return wide;
    }];
  }
  throw new TypeError(`Rows of ${array.kind} are not written`);
}

function textAt(views: Uint8Array, data: readonly Uint8Array[], row: number): Uint8Array {
  const view = new DataView(views.buffer, views.byteOffset + 16 * row, 16);
  const size = view.getUint32(0, true);
  if (size <= 12) return views.subarray(16 * row + 4, 16 * row + 4 + size);
  const start = view.getUint32(12, true);
  return data[view.getUint32(8, true)]?.subarray(start, start + size) ?? new Uint8Array(0);
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** The bytes of base64 text, in an ArrayBuffer of their own. */
export function unbase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(Buffer.from(text, "base64"));
}
