/**
 * A tree of exported structs in one block of C memory, until its consumers have released it.
 *
 * The release callback of every struct is machine code that any thread may call: it sets the struct's `release` to NULL
 * and increments the struct's own counter. It does not walk the children, as a callback in C would: JavaScript does
 * that when it polls. A child whose own `release` is NULL while its counter is 0 was moved out by the consumer and
 * outlives its parent; any other child ended with its parent.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { ArrowArray, ArrowSchema } from "../../bindings/arrow.ts";
import { allocate, ffiPort, layoutOf, libc, littleEndian, roundUp, struct, type StructView } from "../ffi/mod.ts";
import { callRelease, releaseThunks } from "../native/mod.ts";
import { addExport, type ExportEntry, pollExport, type ReleaseOrder } from "../order/mod.ts";

/** One block of C memory: reserved piece by piece, then allocated, then written. */
export class StructBlock {
  #size = 0;
  #address = 0n;
  #memory: ArrayBuffer | undefined;
  readonly #contents: (readonly [at: number, bytes: Uint8Array])[] = [];

  /** Reserves bytes. @returns their offset in the block, a multiple of 8 */
  reserve(bytes: number): number {
    const at = this.#size;
    this.#size = roundUp(at + bytes, 8);
    return at;
  }

  /** Reserves a struct. */
  struct(description: StructDescription): number {
    return this.reserve(struct(description).size);
  }

  /** Reserves bytes for these contents. */
  bytes(contents: Uint8Array): number {
    const at = this.reserve(contents.length);
    this.#contents.push([at, contents]);
    return at;
  }

  /** Bytes reserved so far. */
  get size(): number {
    return this.#size;
  }

  /** Allocates the reserved memory, zeroed. */
  allocate(): void {
    const address = allocate(this.#size);
    this.place(address, ffiPort().memory(address, this.#size));
  }

  /** Writes the block, as it has to be at an address, to zeroed memory that the caller owns. */
  place(address: bigint, memory: ArrayBuffer): void {
    this.#address = address;
    this.#memory = memory;
    for (const [at, bytes] of this.#contents) new Uint8Array(memory).set(bytes, at);
  }

  /** The address of an offset in the block. */
  address(at: number): bigint {
    return this.#address + BigInt(at);
  }

  /** The struct at an offset in the block. */
  at<const D extends StructDescription>(description: D, at: number): StructView<D> {
    return struct(description).over(this.memory, this.#address, at);
  }

  /** Writes consecutive pointers. */
  pointers(at: number, values: readonly bigint[]): void {
    const view = new DataView(this.memory);
    values.forEach((value, i) => view.setBigUint64(at + i * 8, value, littleEndian));
  }

  /** The block's bytes. */
  get memory(): ArrayBuffer {
    if (this.#memory === undefined) throw new TypeError("Cannot write to a block that is not allocated");
    return this.#memory;
  }

  /** The block as the memory of a tree. */
  get tree(): TreeMemory {
    return { words: new Int32Array(this.memory), free: () => this.free() };
  }

  /** Frees the block. */
  free(): void {
    libc().loading.free(this.#address);
    this.#memory = undefined;
  }
}

/** A struct of a tree: its offset and its counter's in the block, its children, and its dictionary. */
export interface TreeNode {
  readonly struct: number;
  readonly counter: number;
  readonly kind: "ArrowSchema" | "ArrowArray";
  readonly inner: readonly TreeNode[];
}

/** A tree whose memory in a block is reserved; `write` writes it once the block is allocated. */
export interface PlannedTree {
  readonly node: TreeNode;
  readonly write: () => void;
}

/** Where a struct's release callback is. */
export const releaseAt = {
  ArrowSchema: layoutOf(ArrowSchema).offsets.release,
  ArrowArray: layoutOf(ArrowArray).offsets.release,
} as const;

/** The memory of a tree. */
export interface TreeMemory {
  /** The whole memory as words. */
  readonly words: Int32Array<ArrayBuffer>;
  /** Frees it. */
  free(): void;
}

/** The export that a tree belongs to. */
export interface TreeOwner {
  /** Orders later work after the consumers, once they have released the tree; false if that is impossible right now. */
  order(order: ReleaseOrder): boolean;
  /** Called once, when no consumer holds any part of the tree any more and its structs are freed. */
  finish(): void;
}

/** The owner of a tree that pins nothing. */
export const noOwner: TreeOwner = { order: () => true, finish: () => {} };

/** A tree held by a consumer, until the consumer has released it. */
export class ExportedTree implements ExportEntry {
  index = -1;
  /** Address of the base struct. */
  readonly address: bigint;
  readonly #memory: TreeMemory;
  readonly #root: TreeNode;
  readonly #owner: TreeOwner;

  // law cdata/ExportedTree.constructor: arrow/release, order/reclaim, order/programs
  /** The tree is in its memory already, with the base struct at this address. */
  constructor(address: bigint, memory: TreeMemory, root: TreeNode, owner: TreeOwner) {
    this.address = address;
    this.#memory = memory;
    this.#root = root;
    this.#owner = owner;
    addExport(this);
  }

  // law cdata/ExportedTree.release: arrow/release, order/reclaim, order/programs
  /** Calls the base struct's release callback, unless the struct was released or moved. */
  release(): void {
    if (this.index < 0 || !hasRelease(this.#memory.words, this.#root)) return;
    callRelease(releaseThunks().address[this.#root.kind], this.address);
  }

  isReleased(): boolean {
    return pollExport(this);
  }

  isReleasedByConsumer(): boolean {
    return !isAlive(this.#memory.words, this.#root, true);
  }

  // law cdata/ExportedTree.order: arrow/release, order/reclaim, order/programs
  order(order: ReleaseOrder): boolean {
    return this.#owner.order(order);
  }

  // law cdata/ExportedTree.finish: arrow/release, order/reclaim, order/programs
  finish(): void {
    this.#memory.free();
    this.#owner.finish();
  }
}

// law cdata/isAlive: arrow/release, order/reclaim, order/programs
function isAlive(words: Int32Array<ArrayBuffer>, node: TreeNode, hasOwner: boolean): boolean {
  // Atomic: once the count is visible, so are the releasing thread's earlier writes to the tree, including `release`.
  if (Atomics.load(words, node.counter / 4) === 0 && (hasOwner || !hasRelease(words, node))) return true;
  for (const child of node.inner) if (isAlive(words, child, false)) return true;
  return false;
}

/** Whether a struct's `release` is not NULL: it was neither released nor moved. */
function hasRelease(words: Int32Array<ArrayBuffer>, { struct, kind }: TreeNode): boolean {
  const at = (struct + releaseAt[kind]) / 4;
  return words[at] !== 0 || words[at + 1] !== 0;
}
