/**
 * Vortex arrays: encoded until their elements are needed.
 *
 * @module
 */
import { openAll, openEvery, openKnown } from "./open_nodes.ts";
import { type ArrowArray, type VortexForm, vortexForm, type VortexNodeForm } from "../arrow/mod.ts";
import type { ArrowDeviceArray, ToArrowOptions } from "../cdata/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import { checkMade, checkOptions, type OptionNames, show, showAs } from "../layout/mod.ts";
import { toArrowArray, viewOf } from "./arrow/to_arrow.ts";
import { alignmentsOf } from "./buffer_alignment.ts";
import type { CanonicalArray } from "./canonical.ts";
import { DecodeContext, type Kept } from "./decode_context.ts";
import { toArrowOnDevice } from "./device/to_arrow_on_device.ts";
import { showDType, type VortexDType } from "./dtype.ts";
import { encodeCanonical } from "./encode_canonical.ts";
import { type EncodedNode, rawOf, rootNode } from "./encoded_node.ts";
import type { VortexLimits } from "./limits.ts";
import { sliceOf } from "./ops/slice.ts";
import { type RawNode, sizeOf } from "./raw_node.ts";
import type { VortexSession } from "./session.ts";
import { writeDType } from "./wire/dtype_flatbuffer.ts";
import type { VortexMetadata } from "./metadata.ts";

/** Options of `VortexArray.toArrow`. */
export interface VortexToArrowOptions {
  /** The field's name. Default: empty. */
  readonly name?: string;
  /** Encodings that Arrow has too, to be kept instead of decoded. Default: none. */
  readonly keep?: readonly ("dictionary" | "runEnd")[];
}

const toArrowOptionNames: OptionNames<VortexToArrowOptions> = { name: true, keep: true };

/** Options of `VortexArray.toArrowDevice`. */
export interface VortexToArrowDeviceOptions extends VortexToArrowOptions, ToArrowOptions {
  /**
   * The stream whose device will hold the elements, in the order of that stream. Numbers are decoded there, including
   * those in structs and extensions; everything else is decoded on the host and copied there, as are kept dictionaries
   * and runs. Default: the elements stay on the host.
   */
  readonly stream?: CudaStream;
}

const toArrowDeviceOptionNames: OptionNames<VortexToArrowDeviceOptions> = {
  ...toArrowOptionNames,
  requestedSchema: true,
  stream: true,
};

// law vortex/keptOf: vortex/device/arrow, vortex/numeric/kept_runs
/** Reads the `keep` option. @throws {TypeError} if it names something that cannot be kept */
function keptOf(keep: VortexToArrowOptions["keep"] = []): Kept {
  if (!Array.isArray(keep)) throw new TypeError(`Cannot keep ${show(keep)}: expected ["dictionary", "runEnd"], or one`);
  const unknown = keep.findIndex((one) => one !== "dictionary" && one !== "runEnd");
  if (unknown >= 0) throw new TypeError(`Cannot keep ${show(keep[unknown])}: expected "dictionary" or "runEnd"`);
  return { dictionary: keep.includes("dictionary"), runEnd: keep.includes("runEnd") };
}

/** The session and limits that an array belongs to. */
export interface ArrayHome {
  readonly session: VortexSession;
  readonly limits: VortexLimits;
  /** Returns what the array was made from, once. */
  readonly close?: () => void;
}

/** The tree of an array, which only this room may use. Set by the class. */
let openedRoot: (array: VortexArray) => EncodedNode;

/**
 * The tree that an array is made of, opened as far as its session knows it. A decoded array is encoded in the simplest
 * encodings.
 */
export function rootOf(array: VortexArray): EncodedNode {
  return openedRoot(array);
}

let lastId = 0;

/**
 * A Vortex array: a tree of encodings. It is decoded on first use, once, within its limits.
 *
 * @example
 * ```ts ignore
 * const array = fromVortexMetadata(tree);
 * console.log(array.displayTree());
 * console.log(`${array.slice(0, 3).toArrow()}`);
 * ```
 */
export class VortexArray implements VortexForm {
  /** Dtype of the elements. */
  readonly dtype: VortexDType;
  /** Number of elements. */
  readonly length: number;
  // law vortex/VortexArray.id: vortex/file/describe
  /**
   * A number that no other array of this thread has. Functions that compare objects field by field cannot see elements:
   * without it they would take any two arrays of one dtype and length for equal.
   */
  readonly id: number = ++lastId;
  readonly #home: ArrayHome;
  /** The tree of nodes; null for a slice of a decoded array. */
  readonly #root: EncodedNode | null;
  #decoded: CanonicalArray | null;
  #isClosed = false;

  static {
    showAs(VortexArray, (array) => {
      return `${array.length} of ${showDType(array.dtype)}${array.#isClosed ? ", closed" : ""}`;
    });
    openedRoot = (array) => array.#opened();
  }

  private constructor(home: ArrayHome, root: EncodedNode | null, decoded: CanonicalArray | null) {
    checkMade(decoded, "VortexArray", "openVortex(source) and file.scan(), or readVortexIpc(bytes)");
    const { dtype, length } = root ?? decoded ?? noArray();
    this.#home = home;
    this.#root = root;
    this.#decoded = decoded;
    this.dtype = dtype;
    this.length = length;
  }

  /** An array over a node. For the entry points that bring arrays in. */
  static ofNode(root: EncodedNode, home: ArrayHome): VortexArray {
    return new VortexArray(home, root, null);
  }

  /** An array that is already decoded. For the entry points that bring arrays in. */
  static ofDecoded(array: CanonicalArray, home: ArrayHome): VortexArray {
    return new VortexArray(home, null, array);
  }

  /** The root encoding's serialized id: `vortex.struct`. */
  get encoding(): string {
    return this.#encoded().id;
  }

  /** The elements, decoded once. @throws {VortexError} if they cannot be decoded, or exceed the limits */
  decoded(): CanonicalArray {
    this.#check();
    this.#decoded ??= this.#decode({ dictionary: false, runEnd: false });
    return this.#decoded;
  }

  #decode(keep: Kept): CanonicalArray {
    const { session, limits } = this.#home;
    if (this.#root === null) return this.#decoded ?? noArray();
    return new DecodeContext(session, limits, keep).decodeKeeping(this.#root);
  }

  /** The tree that the array is made of. A decoded array is encoded in the simplest encodings. */
  #encoded(): RawNode {
    this.#check();
    return this.#root === null ? encodeCanonical(this.#decoded ?? noArray()) : rawOf(this.#root);
  }

  /**
   * The elements from `start` to before `end`. This decodes the array, and closing the array invalidates the slice.
   *
   * @throws {RangeError} unless 0 <= start <= end <= length
   * @throws {VortexError} if it cannot be decoded
   */
  slice(start: number, end: number = this.length): VortexArray {
    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= this.length)) {
      const range = `0 <= start <= end <= ${this.length}`;
      throw new RangeError(`Cannot slice ${this.length} elements from ${start} to ${end}: expected ${range}`);
    }
    const { session, limits } = this.#home;
    const context = new DecodeContext(session, limits);
    return VortexArray.ofDecoded(sliceOf(this.decoded(), start, end, context.allocateForAll), { session, limits });
  }

  /**
   * The elements as an Arrow array, over the same memory where their layout is Arrow's: text by views, lists by 32-bit
   * offsets, decimals by 128 bits, or 256.
   *
   * @throws {VortexError} if the elements cannot be decoded
   */
  toArrow(options: VortexToArrowOptions = {}): ArrowArray {
    checkOptions(options, toArrowOptionNames);
    const { name = "" } = options;
    const keep = keptOf(options.keep);
    const { session, limits } = this.#home;
    const array = keep.dictionary || keep.runEnd ? this.#decode(keep) : this.decoded();
    return toArrowArray(array, name, session, new DecodeContext(session, limits).allocateForAll);
  }

  /**
   * The elements through the Arrow C device interface: on the host, or with a stream on its device, decoded anew each
   * time.
   *
   * @throws {VortexError} if the elements cannot be decoded
   * @throws {ExchangeError} if a requested schema is of another kind
   */
  toArrowDevice(options: VortexToArrowDeviceOptions = {}): ArrowDeviceArray {
    checkOptions(options, toArrowDeviceOptionNames);
    const { name, keep, stream, ...exported } = options;
    if (stream !== undefined) {
      using array = this.#onDevice(name ?? "", stream, keptOf(keep));
      return array.toArrowDevice(exported); // which retains the memory that it describes
    }
    return this.toArrow({ ...name !== undefined && { name }, ...keep !== undefined && { keep } })
      .toArrowDevice(exported);
  }

  #onDevice(name: string, stream: CudaStream, keep: Kept): ArrowArray {
    const { session, limits } = this.#home;
    const root = this.#nodes();
    openAll(session, root);
    return toArrowOnDevice(root, name, new DecodeContext(session, limits, keep), stream);
  }

  /** The Arrow C data protocol, as other libraries call it. */
  __arrow_c_array__(options: ToArrowOptions = {}): ArrowDeviceArray {
    return this.toArrow().__arrow_c_array__(options);
  }

  /** The Arrow C device protocol, as other libraries call it. */
  __arrow_c_device_array__(options: ToArrowOptions = {}): ArrowDeviceArray {
    return this.toArrowDevice(options);
  }

  #nodes(): EncodedNode {
    this.#check();
    return this.#root ?? rootNode(this.#encoded(), this.dtype, this.length);
  }

  #opened(): EncodedNode {
    const root = this.#nodes();
    const { session, limits } = this.#home;
    openEvery(new DecodeContext(session, limits), root);
    return root;
  }

  /**
   * The array as a tree of tuples, from which Vortex in Python, or `fromVortexMetadata`, rebuilds it. Buffers are not
   * copied.
   *
   * @throws {VortexError} for children of an unknown encoding that came in a message, which does not say their dtypes
   */
  toMetadata(): VortexMetadata {
    openAll(this.#home.session, this.#nodes());
    return metadataOf(this.#opened());
  }

  /** How Python gets the array: as an Arrow array, and through `__vortex_array_metadata__`. */
  [vortexForm](): VortexNodeForm {
    openAll(this.#home.session, this.#nodes());
    return formOf(this.#opened());
  }

  /** Each node's encoding, dtype, length and bytes, one per line. Children of unknown encodings have no dtype. */
  displayTree(): string {
    const lines: string[] = [];
    const write = (raw: RawNode, node: EncodedNode | null, name: string, indent: string): void => {
      const bytes = typeof raw.buffers === "number" ? null : raw.buffers.reduce((sum, one) => sum + sizeOf(one), 0);
      const what = node === null ? "" : `(${showDType(node.dtype)}, len=${node.length})`;
      lines.push(`${indent}${name}: ${raw.id}${what}${bytes === null ? "" : ` nbytes=${bytes}`}`);
      raw.children.forEach((child, i) => write(child, node?.known(i) ?? null, `${i}`, `${indent}  `));
    };
    const root = this.#nodes();
    openKnown(this.#home.session, root);
    write(rawOf(root), root, "root", "");
    return lines.join("\n");
  }

  /** The elements as a program would write them, with the middle of long arrays omitted. */
  toString(): string {
    return `${this.toArrow()}`;
  }

  /** For `JSON.stringify` and `Response.json`: the elements, as `ArrowArray.toJSON` writes them. */
  toJSON(): unknown {
    return this.toArrow().toJSON();
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Returns what the array was made from. Arrays made from it and unreleased exports must be gone. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#decoded = null;
    this.#home.close?.();
  }

  /** The same as `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #check(): void {
    if (this.#isClosed) throw new TypeError("Cannot use a closed VortexArray");
  }
}

function noArray(): never {
  throw new TypeError("An array has neither nodes nor elements");
}

function metadataOf(node: EncodedNode): VortexMetadata {
  const raw = rawOf(node);
  const buffers = typeof raw.buffers === "number"
    ? raw.buffers
    : raw.buffers.map((one) => one instanceof Uint8Array ? one : one.memory);
  return [raw.id, writeDType(node.dtype), node.length, raw.metadata, buffers, childrenOf(node).map(metadataOf)];
}

// law vortex/childrenOf: vortex/core/unknown
/** A node's children. @throws {VortexError} if their dtypes are unknown: without them they would not be an array's */
function childrenOf(node: EncodedNode): readonly EncodedNode[] {
  const { id, children, childCount } = node;
  if (children.length === childCount) return children;
  return node.fail(
    `Cannot describe the children of ${id}: register the encoding, which alone knows their dtypes, or pass the array ` +
      "on as a message, with encodeVortexIpc",
  );
}

function formOf(node: EncodedNode): VortexNodeForm {
  const alignments = alignmentsOf(node);
  return {
    id: node.id,
    dtype: writeDType(node.dtype),
    length: node.length,
    metadata: node.metadata,
    buffers: node.buffers.map((bytes, i) => [viewOf(bytes), alignments[i] ?? 1] as const),
    children: childrenOf(node).map(formOf),
  };
}
