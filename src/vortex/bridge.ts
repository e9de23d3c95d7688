/**
 * Arrays described by another Vortex session: a tree of tuples, with or without its buffers.
 *
 * Checks run in the same order as in Vortex itself: the tuple, its dtype, its buffers, its children depth first; then,
 * from the root node down, the encoding's id, its metadata and the requirements on its children.
 *
 * @module
 */
import { openAll } from "./open_nodes.ts";
import { capsuleSource, isForeignCapsule } from "../cdata/mod.ts";
import { VORTEX_BUFFER_CAPSULE } from "../../bindings/vortex.ts";
import type { CudaStream } from "../device/mod.ts";
import { checkOptions, type OptionNames } from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { rootNode } from "./encoded_node.ts";
import { VortexError } from "./error.ts";
import { handedMemory, type OwnedBuffer, takeDescriptor } from "./handed_buffer.ts";
import { homeOf, type VortexReadOptions } from "./read_options.ts";
import type { VortexLimits } from "./limits.ts";
import type { VortexMetadata } from "./metadata.ts";
import type { RawBuffer, RawNode } from "./raw_node.ts";
import { VortexArray } from "./vortex_array.ts";
import { readDType } from "./wire/dtype_flatbuffer.ts";
import { type Bytes, noBytes, ownBytes } from "./wire/source.ts";

/** Options of {@linkcode fromVortexMetadata}. */
export interface FromVortexMetadataOptions extends VortexReadOptions {
  /** The stream that will use device buffers: it waits for their producer. */
  readonly stream?: CudaStream;
}

const optionNames: OptionNames<FromVortexMetadataOptions> = { session: true, limits: true, stream: true };

/** An object that describes itself: a Vortex array in Python. */
export interface VortexMetadataSource {
  /** Returns the tree of tuples, or an object whose `$value()` returns it. */
  __vortex_array_metadata__(): unknown;
}

// law vortex/fromVortexMetadata: vortex/core/bridge
/**
 * Rebuilds an array described by another session. Only what this session knows can be rebuilt: encodings and extension
 * types that a program registered there must be registered here as well.
 *
 * Buffers in a capsule are taken out of it, and returned once the array is closed and nothing uses them any more; bytes
 * and this package's buffers still belong to their owner. If buffers are only counted, the array can be described, but
 * not decoded.
 *
 * @param source a tree, a Python object with `__vortex_array_metadata__()`, or the value that it returned
 * @throws {VortexError} if the tree is malformed, an encoding is unknown, or anything is inconsistent; the message ends
 *   with the path of the node. Buffers taken by then are returned
 * @throws {ExchangeError} for a buffer that cannot be taken: wrong version or alignment, or already taken
 */
export function fromVortexMetadata(
  source: VortexMetadata | VortexMetadataSource,
  options: FromVortexMetadataOptions = {},
): VortexArray {
  checkOptions(options, optionNames);
  const { stream, ...rest } = options;
  const home = homeOf(rest);
  const taken: OwnedBuffer[] = [];
  const close = () => {
    for (const buffer of taken.splice(0)) buffer.close();
  };
  try {
    const reader = new TreeReader(home.limits, stream === undefined ? {} : { stream }, taken);
    const raw = reader.read(treeOf(source), "$", home.limits.depth);
    const { outer } = raw;
    if (outer === null) throw new VortexError("$", "The tree has no dtype");
    const root = rootNode(raw, outer.dtype, outer.length);
    openAll(home.session, root);
    return VortexArray.ofNode(root, { ...home, close });
  } catch (error) {
    close();
    throw error;
  }
}

function isSource(source: unknown): source is VortexMetadataSource {
  return isObject(source) && "__vortex_array_metadata__" in source;
}

function isObject(value: unknown): value is object {
  return (typeof value === "object" || typeof value === "function") && value !== null;
}

/** The tree as JavaScript values: a Python object returns them from `$value()`. */
function treeOf(source: unknown): unknown {
  const metadata = isSource(source) ? source.__vortex_array_metadata__() : source;
  if (
    !isObject(metadata) || Array.isArray(metadata) || !("$value" in metadata) || typeof metadata.$value !== "function"
  ) return metadata;
  return metadata.$value();
}

/** Reads trees, and takes their buffers. */
class TreeReader {
  readonly #limits: VortexLimits;
  readonly #where: { readonly stream?: CudaStream };
  readonly #taken: OwnedBuffer[];
  #left: number;

  constructor(limits: VortexLimits, where: { readonly stream?: CudaStream }, taken: OwnedBuffer[]) {
    this.#limits = limits;
    this.#where = where;
    this.#taken = taken;
    this.#left = limits.nodes;
  }

  // law vortex/TreeReader.read: vortex/core/bridge
  read(tuple: unknown, path: string, depth: number): RawNode {
    const fail = (why: string): never => {
      throw new VortexError(path, why);
    };
    if (depth === 0) fail("The tree is nested more deeply than the limit allows");
    if (this.#left-- <= 0) fail("The tree has more nodes than the limit allows");
    if (!Array.isArray(tuple)) return fail(`expected a Vortex array metadata tuple, got ${typeof tuple}`);
    const parts: readonly unknown[] = tuple;
    if (parts.length !== 6) fail(`expected Vortex array metadata tuple of length 6, got ${parts.length}`);
    const [id, dtypeBytes, size, metadata, buffers, children] = parts;
    if (typeof id !== "string" || id === "") return fail(`The encoding's id is ${String(id)}. Expected text`);
    if (!(dtypeBytes instanceof Uint8Array)) return fail(`The dtype of ${id} is not bytes`);
    const dtype = readDType(aligned(dtypeBytes), path, this.#limits);
    const length = Number(size);
    if ((typeof size !== "number" && typeof size !== "bigint") || !Number.isSafeInteger(length) || length < 0) {
      fail(`The length of ${id} is ${String(size)}. Expected a number from 0 to 2^53 - 1`);
    }
    if (!(metadata instanceof Uint8Array)) return fail(`The metadata of ${id} is not bytes`);
    if (!Array.isArray(children)) return fail(`The children of ${id} are not a list`);
    const own = this.#buffers(buffers, id, path);
    return {
      id,
      metadata: ownBytes(metadata),
      buffers: own,
      children: children.map((child, i) => this.read(child, `${path}.children[${i}]`, depth - 1)),
      outer: { dtype, length },
    };
  }

  #buffers(buffers: unknown, id: string, path: string): readonly RawBuffer[] | number {
    if (typeof buffers === "number" && Number.isInteger(buffers) && buffers >= 0) return buffers;
    if (Array.isArray(buffers)) return buffers.map((buffer) => this.#take(buffer, id, path));
    throw new VortexError(path, `The buffers of ${id} are neither a list nor a count`);
  }

  #take(buffer: unknown, id: string, path: string): RawBuffer {
    if (buffer instanceof Uint8Array) return aligned(buffer);
    if (buffer instanceof MemoryBuffer) return handedMemory(buffer);
    if (isForeignCapsule(buffer)) {
      const { pointer, take } = buffer[capsuleSource](VORTEX_BUFFER_CAPSULE);
      const own = this.#own(takeDescriptor(pointer, this.#where));
      take();
      return own;
    }
    if (isDescriptor(buffer)) return this.#own(takeDescriptor(buffer.descriptor, this.#where));
    throw new VortexError(path, `A buffer of ${id} is neither bytes nor a MemoryBuffer nor a capsule`);
  }

  #own(buffer: OwnedBuffer): OwnedBuffer {
    this.#taken.push(buffer);
    return buffer;
  }
}

/** A buffer given by the address of its struct, which the caller owns. */
function isDescriptor(buffer: unknown): buffer is { readonly descriptor: bigint } {
  return isObject(buffer) && "descriptor" in buffer && typeof buffer.descriptor === "bigint";
}

/** Bytes aligned to 8: a copy if they are not. */
function aligned(bytes: Uint8Array): Bytes {
  const own = ownBytes(bytes);
  if (own.length === 0) return noBytes;
  return own.byteOffset % 8 === 0 ? own : own.slice();
}
