/**
 * A tree of exported structs in one block of C memory, and whether its consumers still need it.
 *
 * The release callback of every struct is machine code that any thread may call: it sets the struct's `release` to NULL
 * and increments the struct's own counter. It does not walk the children, as a callback in C would: JavaScript does that
 * when it looks. A child whose own `release` is NULL while its counter is 0 was moved out by the consumer and lives on
 * after its parent; any other child ended with its parent.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { ArrowArray, ArrowSchema } from "../../bindings/arrow.ts";
import { allocate } from "../ffi/arena.ts";
import { libc } from "../ffi/libc.ts";
import { ffiPort } from "../ffi/port.ts";
import { layoutOf, littleEndian, roundUp, struct, type StructView } from "../ffi/struct.ts";
import { addExport, type Listed, removeExport } from "./live_exports.ts";

/** One block of C memory: reserved piece by piece, then allocated, then written. */
export class Block {
  #size = 0;
  #address = 0n;
  #memory: ArrayBuffer | undefined;
  readonly #contents: (readonly [at: number, bytes: Uint8Array])[] = [];

  /** Reserves bytes. @returns where in the block they begin, a multiple of 8 */
  reserve(bytes: number): number {
    const at = this.#size;
    this.#size = roundUp(at + bytes, 8);
    return at;
  }

  /** Reserves a struct. */
  struct(description: StructDescription): number {
    return this.reserve(struct(description).size);
  }

  /** Reserves bytes and says what will be in them. */
  bytes(contents: Uint8Array): number {
    const at = this.reserve(contents.length);
    this.#contents.push([at, contents]);
    return at;
  }

  /** Bytes that are reserved. */
  get size(): number {
    return this.#size;
  }

  /** Allocates all that was reserved, zeroed. */
  allocate(): void {
    const address = allocate(this.#size);
    this.place(address, ffiPort().memory(address, this.#size));
  }

  /** Writes to zeroed memory of the caller's what is to be at an address. */
  place(address: bigint, memory: ArrayBuffer): void {
    this.#address = address;
    this.#memory = memory;
    for (const [at, bytes] of this.#contents) new Uint8Array(memory).set(bytes, at);
  }

  /** Address of a place in the allocated block. */
  address(at: number): bigint {
    return this.#address + BigInt(at);
  }

  /** A struct in the allocated block. */
  at<const D extends StructDescription>(description: D, at: number): StructView<D> {
    return struct(description).over(this.memory, this.#address, at);
  }

  /** Writes pointers one after the other. */
  pointers(at: number, values: readonly bigint[]): void {
    const view = new DataView(this.memory);
    values.forEach((value, i) => view.setBigUint64(at + i * 8, value, littleEndian));
  }

  /** The allocated block. */
  get memory(): ArrayBuffer {
    if (this.#memory === undefined) throw new TypeError("Cannot write to a block that is not allocated");
    return this.#memory;
  }

  /** The allocated block as the memory of a tree. */
  get tree(): TreeMemory {
    return { address: this.#address, words: new Int32Array(this.memory), free: () => this.free() };
  }

  /** Frees the block. */
  free(): void {
    libc().loading.free(this.#address);
    this.#memory = undefined;
  }
}

/** A struct of a tree: where in the block it and its counter are, and the structs inside, the dictionary's too. */
export interface TreeNode {
  readonly struct: number;
  readonly counter: number;
  readonly kind: "ArrowSchema" | "ArrowArray";
  readonly inner: readonly TreeNode[];
}

const releaseAt = {
  ArrowSchema: layoutOf(ArrowSchema).offsets.release,
  ArrowArray: layoutOf(ArrowArray).offsets.release,
} as const;

/** The memory of a tree. */
export interface TreeMemory {
  /** Where it begins. */
  readonly address: bigint;
  /** All of it. */
  readonly words: Int32Array<ArrayBuffer>;
  /** Gives it back. */
  free(): void;
}

/** Whom an exported tree is of. */
export interface TreeOwner {
  /** Orders what comes after the consumers, when they have let go, or says that it cannot be done now. */
  order(): boolean;
  /** Called once, when no consumer has any part of the tree any more and its memory was given back. */
  finish(): void;
}

/** Whom a tree is of that nobody needs to be told about. */
export const nobody: TreeOwner = { order: () => true, finish: () => {} };

/** A tree that is out. */
export class ExportedTree implements Listed {
  /** Where it is in the list of live exports. */
  place = -1;
  /** Address of the base struct. */
  readonly address: bigint;
  readonly #memory: TreeMemory;
  readonly #root: TreeNode;
  readonly #owner: TreeOwner;
  #finished = false;

  /** Writes nothing: the tree lies in its memory already. */
  constructor(memory: TreeMemory, root: TreeNode, owner: TreeOwner) {
    this.address = root.struct === 0 ? memory.address : memory.address + BigInt(root.struct);
    this.#memory = memory;
    this.#root = root;
    this.#owner = owner;
    addExport(this);
  }

  /** Looks whether consumers have released every part, and if so gives the memory back, once. */
  isReleased(): boolean {
    if (!this.#finished && !isAlive(this.#memory.words, this.#root, true) && this.#owner.order()) {
      this.#finished = true;
      removeExport(this);
      this.#memory.free();
      this.#owner.finish();
    }
    return this.#finished;
  }
}

function isAlive(words: Int32Array<ArrayBuffer>, node: TreeNode, isHeld: boolean): boolean {
  // Atomics: what the releasing thread has done to the tree before is seen once its count is.
  const isOver = Atomics.load(words, node.counter / 4) > 0;
  const release = (node.struct + releaseAt[node.kind]) / 4;
  const wasMoved = Atomics.load(words, release) === 0 && Atomics.load(words, release + 1) === 0;
  if (!isOver && (isHeld || wasMoved)) return true;
  for (const child of node.inner) if (isAlive(words, child, false)) return true;
  return false;
}
