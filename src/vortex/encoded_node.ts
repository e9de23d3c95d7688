/**
 * A node of an array with its dtype and length, still fully encoded.
 *
 * @module
 */
import { boolDType, equalDTypes, showDType, type VortexDType } from "./dtype.ts";
import { VortexError } from "./error.ts";
import { hostBytesOf, type RawBuffer, type RawNode, sizeOf } from "./raw_node.ts";
import type { Bytes } from "./wire/source.ts";
import { ProtoMessage } from "./wire/protobuf.ts";

/** The value of `#opened` until the node is opened. */
const notOpened: unique symbol = Symbol("notOpened");

/** What a node was made from, which only this room may use. Set by the class. */
let rawNode: (node: EncodedNode) => RawNode;

/**
 * A node from a file, a message or a tuple, with the dtype and length that its parent gave it. Its encoding requests
 * its children one by one, each with the dtype and length that it must have.
 */
export class EncodedNode {
  /** Dtype of the elements. */
  readonly dtype: VortexDType;
  /** Number of elements. */
  readonly length: number;
  readonly #raw: RawNode;
  readonly #parent: EncodedNode | null;
  readonly #index: number;
  readonly #children: (EncodedNode | undefined)[] = [];
  #opened: unknown = notOpened;

  static {
    rawNode = (node) => node.#raw;
  }

  /** Use {@linkcode rootNode}, or `child`. */
  constructor(raw: RawNode, dtype: VortexDType, length: number, parent: EncodedNode | null, index: number) {
    this.#raw = raw;
    this.dtype = dtype;
    this.length = length;
    this.#parent = parent;
    this.#index = index;
  }

  /** The encoding's serialized id. */
  get id(): string {
    return this.#raw.id;
  }

  /** The encoding's metadata. */
  get metadata(): Bytes {
    return this.#raw.metadata;
  }

  /** Path from the root: `$.children[1].children[0]`. */
  get path(): string {
    return this.#parent === null ? "$" : `${this.#parent.path}.children[${this.#index}]`;
  }

  /** Number of buffers. */
  get bufferCount(): number {
    const { buffers } = this.#raw;
    return typeof buffers === "number" ? buffers : buffers.length;
  }

  // law vortex/EncodedNode.buffer: vortex/core/ipc
  /** A buffer's bytes on the host, aligned to 8: a copy if they are not. */
  buffer(index: number): Bytes {
    const bytes = this.bytes(index);
    return bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
  }

  /** A buffer's bytes on the host at any alignment, for callers that read byte by byte or copy anyway. */
  bytes(index: number): Bytes {
    return hostBytesOf(rawBufferOf(this, index));
  }

  /** Size of a buffer in bytes; null if buffers were only counted. */
  bufferSize(index: number): number | null {
    const { buffers } = this.#raw;
    return typeof buffers === "number" ? null : sizeOf(rawBufferOf(this, index));
  }

  /** All buffers' bytes on the host, each aligned to 8. */
  get buffers(): readonly Bytes[] {
    return Array.from({ length: this.bufferCount }, (_, index) => this.buffer(index));
  }

  /** Number of children. */
  get childCount(): number {
    return this.#raw.children.length;
  }

  /** The children requested so far. After `open`, and `openRest` where there is one, these are all. */
  get children(): readonly EncodedNode[] {
    return this.#children.filter((child) => child !== undefined);
  }

  /** A child requested before; null if it was not. */
  known(index: number): EncodedNode | null {
    return this.#children[index] ?? null;
  }

  // law vortex/EncodedNode.child: vortex/core/bridge
  /**
   * A child, which must have this dtype and this length.
   *
   * @throws {VortexError} if there is no such child, or its own dtype or length differs
   */
  child(index: number, dtype: VortexDType, length: number): EncodedNode {
    const raw = this.#raw.children[index];
    if (raw === undefined) this.fail(`Cannot find child ${index} of ${this.id}: it has ${this.childCount} children`);
    if (!Number.isSafeInteger(length) || length < 0) this.fail(`The length of child ${index} would be ${length}`);
    const { outer } = raw;
    if (outer !== null && outer.dtype !== dtype && !equalDTypes(outer.dtype, dtype)) {
      this.fail(`child ${index} has dtype ${showDType(outer.dtype)}, expected ${showDType(dtype)}`);
    }
    if (outer !== null && outer.length !== length) {
      this.fail(`child ${index} has length ${outer.length}, expected ${length}`);
    }
    const known = this.#children[index];
    if (known !== undefined && known.length === length && equalDTypes(known.dtype, dtype)) return known;
    return this.#children[index] = new EncodedNode(raw, dtype, length, this, index);
  }

  // law vortex/EncodedNode.validityChild: vortex/core/bridge
  /**
   * The validity child: `index` is its position, after all others. Null if there is none; then no element is null.
   *
   * @throws {VortexError} if there are more or fewer children, or there is one and the dtype has no nulls
   */
  validityChild(index: number): EncodedNode | null {
    this.expectChildren(index, index + 1);
    if (this.childCount === index) return null;
    if (!this.dtype.nullable) this.fail(`${this.id} has a validity child but dtype ${this.typeText} is not nullable`);
    return this.child(index, boolDType, this.length);
  }

  /** Checks the number of children. @throws {VortexError} unless it is in the range */
  expectChildren(least: number, most: number = least): void {
    this.#expectCount(this.childCount, "children", least, most);
  }

  /** Checks the number of buffers. @throws {VortexError} unless it is in the range */
  expectBuffers(least: number, most: number = least): void {
    this.#expectCount(this.bufferCount, "buffers", least, most);
  }

  #expectCount(count: number, what: string, least: number, most: number): void {
    if (count >= least && count <= most) return;
    const expected = least === most ? least : most === Infinity ? `at least ${least}` : `${least} to ${most}`;
    this.fail(`${this.id} has ${count} ${what}, expected ${expected}`);
  }

  // law vortex/EncodedNode.expectSize: vortex/core/bridge
  /** Checks the size of a buffer, if it is known. @throws {VortexError} unless it is in the range */
  expectSize(index: number, least: number, most = Infinity): void {
    const size = this.bufferSize(index);
    if (size === null || (size >= least && size <= most)) return;
    const expected = least === most ? "" : "at least ";
    this.fail(`Buffer ${index} of ${this.id} has ${size} bytes, expected ${expected}${least}`);
  }

  // law vortex/EncodedNode.expectNoMetadata: vortex/core/contradictions
  /** Checks that there is no metadata. @throws {VortexError} if there is */
  expectNoMetadata(): void {
    const { length } = this.metadata;
    if (length > 0) this.fail(`${this.id} expects empty metadata, got ${length} bytes`);
  }

  /** The metadata as a message. @throws {VortexError} if it is not one */
  message(): ProtoMessage {
    return new ProtoMessage(this.metadata, this.path, `metadata of ${this.id}`);
  }

  /** The dtype as text, for errors. */
  get typeText(): string {
    return showDType(this.dtype);
  }

  /** An error about this node. */
  error(text: string, options?: ErrorOptions): VortexError {
    return new VortexError(this.path, text, options);
  }

  /** Throws an error about this node. @throws {VortexError} always */
  fail(text: string): never {
    throw this.error(text);
  }

  /** The result of the encoding's `open` for this node: computed once. */
  opened<T>(open: (node: EncodedNode) => T): T {
    if (this.#opened === notOpened) this.#opened = open(this);
    return this.#opened as T; // a node has one encoding, and only its `open` opens it
  }
}

/** The raw node that a node was made from. */
export function rawOf(node: EncodedNode): RawNode {
  return rawNode(node);
}

/** A buffer of a node, on the host or on a device. */
export function rawBufferOf(node: EncodedNode, index: number): RawBuffer {
  const { buffers } = rawOf(node);
  if (typeof buffers === "number") {
    return node.fail("Cannot decode buffers that were counted and not handed over: pass the tree with its buffers");
  }
  return buffers[index] ?? node.fail(`Cannot find buffer ${index} of ${buffers.length} of ${node.id}`);
}

/**
 * The root node.
 *
 * @throws {VortexError} if its own dtype or length differs
 */
export function rootNode(raw: RawNode, dtype: VortexDType, length: number): EncodedNode {
  if (raw.outer !== null && raw.outer.length !== length) {
    throw new VortexError("$", `The array has length ${raw.outer.length}, expected ${length}`);
  }
  if (raw.outer !== null && !equalDTypes(raw.outer.dtype, dtype)) {
    throw new VortexError("$", `The array has dtype ${showDType(raw.outer.dtype)}, expected ${showDType(dtype)}`);
  }
  return new EncodedNode(raw, dtype, length, null, 0);
}
