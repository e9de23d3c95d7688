/**
 * Arrays of Vortex: encoded until somebody wants their elements.
 *
 * @module
 */
import { openAll, openEvery, openKnown } from "./open_nodes.ts";
import { type ArrowArray, type VortexForm, vortexForm, type VortexNodeForm } from "../arrow/mod.ts";
import type { ArrowDeviceArray, ToArrowOptions } from "../cdata/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import { checkMade, checkOptions, type OptionNames, showAs } from "../layout/mod.ts";
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
  /** Encodings that Arrow has, too, and that are not to be decoded. Default: none. */
  readonly keep?: readonly ("dictionary" | "runEnd")[];
}

const toArrowOptionNames: OptionNames<VortexToArrowOptions> = { name: true, keep: true };

/** Options of `VortexArray.toArrowDevice`. */
export interface VortexToArrowDeviceOptions extends VortexToArrowOptions, ToArrowOptions {
  /**
   * The stream on whose device the elements are to be, and in whose order. Numbers are decoded there, also of structs
   * and extensions; all else is decoded by the host and sent there, as are dictionaries and runs that are kept.
   * Default: the elements stay on the host.
   */
  readonly stream?: CudaStream;
}

const toArrowDeviceOptionNames: OptionNames<VortexToArrowDeviceOptions> = {
  ...toArrowOptionNames,
  requestedSchema: true,
  stream: true,
};

// law vortex/keptOf: vortex/device/arrow, vortex/numeric/kept_runs
/** What an option says. @throws {TypeError} if it says what cannot be kept */
function keptOf(keep: VortexToArrowOptions["keep"] = []): Kept {
  const unknown = keep.find((one) => one !== "dictionary" && one !== "runEnd");
  if (unknown !== undefined) throw new TypeError(`Cannot keep ${unknown}: expected "dictionary" or "runEnd"`);
  return { dictionary: keep.includes("dictionary"), runEnd: keep.includes("runEnd") };
}

/** Where arrays belong. */
export interface ArrayHome {
  readonly session: VortexSession;
  readonly limits: VortexLimits;
  /** Returns what the array was made from, once. */
  readonly close?: () => void;
}

/** What only this room may do with an array. Filled in by the class, which alone can reach what is private. */
const internals: { root: (array: VortexArray) => EncodedNode } = { root: () => noArray() };

/**
 * The tree that an array is made of, opened as far as its session knows it. What was decoded is encoded in the plainest
 * way.
 */
export function rootOf(array: VortexArray): EncodedNode {
  return internals.root(array);
}

/**
 * An array as Vortex has it: a tree of encodings. It is decoded at first need, once, within its limits.
 *
 * @example
 * ```ts ignore
 * const array = fromVortexMetadata(tree);
 * console.log(array.displayTree());
 * console.log(`${array.slice(0, 3).toArrow()}`);
 * ```
 */
export class VortexArray implements VortexForm {
  /** What the elements are. */
  readonly dtype: VortexDType;
  /** Elements. */
  readonly length: number;
  readonly #home: ArrayHome;
  /** What it is made of; null for a slice of what was decoded. */
  readonly #root: EncodedNode | null;
  #decoded: CanonicalArray | null;
  #isClosed = false;

  static {
    showAs(VortexArray, (array) => {
      return `${array.length} of ${showDType(array.dtype)}${array.#isClosed ? ", closed" : ""}`;
    });
    internals.root = (array) => array.#opened();
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

  /** An array of a node. For the doors by which arrays come in. */
  static ofNode(root: EncodedNode, home: ArrayHome): VortexArray {
    return new VortexArray(home, root, null);
  }

  /** An array that is decoded. For the doors by which arrays come in. */
  static ofDecoded(array: CanonicalArray, home: ArrayHome): VortexArray {
    return new VortexArray(home, null, array);
  }

  /** The outermost encoding's serialized id: `vortex.struct`. */
  get encoding(): string {
    return this.#encoded().id;
  }

  /** The elements, decoded once. @throws {VortexError} if they cannot be, or exceed the limits */
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

  /** The tree that the array is made of. What was decoded is encoded in the plainest way. */
  #encoded(): RawNode {
    this.#check();
    return (this.#root === null ? null : rawOf(this.#root)) ?? encodeCanonical(this.#decoded ?? noArray());
  }

  /**
   * The elements from `start` to before `end`. The array is decoded for it, and closing it ends the slice too.
   *
   * @throws {RangeError} unless 0 <= start <= end <= length
   * @throws {VortexError} if it cannot be decoded
   */
  slice(start: number, end: number = this.length): VortexArray {
    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= this.length)) {
      throw new RangeError(`Cannot slice ${this.length} elements from ${start} to ${end}`);
    }
    const { session, limits } = this.#home;
    const context = new DecodeContext(session, limits);
    return VortexArray.ofDecoded(sliceOf(this.decoded(), start, end, context.allocateForAll), { session, limits });
  }

  /**
   * The elements as an array of Arrow, over the same memory where they lie as Arrow has them: text by views, lists by
   * offsets of 32 bits, decimals as narrow as their precision allows.
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
   * The elements by the Arrow C device interface: those of the host, or with a stream those of its device, which are
   * decoded anew each time.
   *
   * @throws {VortexError} if the elements cannot be decoded
   * @throws {ExchangeError} if a requested schema is of another kind
   */
  toArrowDevice(options: VortexToArrowDeviceOptions = {}): ArrowDeviceArray {
    checkOptions(options, toArrowDeviceOptionNames);
    const { name, keep, stream, ...exported } = options;
    if (stream !== undefined) {
      using array = this.#onDevice(name ?? "", stream, keptOf(keep));
      return array.toArrowDevice(exported); // which keeps the memory that it is about
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
   */
  toMetadata(): VortexMetadata {
    openAll(this.#home.session, this.#nodes());
    return metadataOf(this.#opened());
  }

  /** How Python gets the array: as one of Arrow, and by `__vortex_array_metadata__`. */
  [vortexForm](): VortexNodeForm {
    openAll(this.#home.session, this.#nodes());
    return formOf(this.#opened());
  }

  /** Each node's encoding, dtype, length and bytes, one in a line. Children that nobody knows have no dtype. */
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

  /** The elements as a program would write them, without the middle of long arrays. */
  toString(): string {
    return `${this.toArrow()}`;
  }

  /** Returns what the array was made from. Arrays made from it, and exports that were not released, must be gone. */
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
  return [raw.id, writeDType(node.dtype), node.length, raw.metadata, buffers, node.children.map(metadataOf)];
}

function formOf(node: EncodedNode): VortexNodeForm {
  const alignments = alignmentsOf(node);
  return {
    id: node.id,
    dtype: writeDType(node.dtype),
    length: node.length,
    metadata: node.metadata,
    buffers: node.buffers.map((bytes, i) => [viewOf(bytes), alignments[i] ?? 1] as const),
    children: node.children.map(formOf),
  };
}
