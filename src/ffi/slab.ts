/**
 * Many pieces of native memory of one size, for structs that are handed out and come back.
 *
 * @module
 */
import { allocate } from "./arena.ts";
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";

/** A piece of native memory, and what its user has made of it. */
export interface Slot<T> {
  /** Where it is. */
  readonly address: bigint;
  /** What was made of it once; what its last user wrote there still stands there. */
  readonly content: T;
}

/** One block of the C allocator, cut into pieces. */
interface Slab<T> {
  readonly address: bigint;
  readonly memory: ArrayBuffer;
  readonly free: Piece<T>[];
}

/** A piece, and where it is in which block. What is made of it is made when it is first needed. */
class Piece<T> implements Slot<T> {
  readonly address: bigint;
  readonly slab: Slab<T>;
  readonly at: number;
  made: T | undefined;

  constructor(slab: Slab<T>, at: number) {
    this.address = slab.address + BigInt(at);
    this.slab = slab;
    this.at = at;
  }

  get content(): T {
    if (this.made === undefined) throw new TypeError("Cannot use a piece that nobody has taken");
    return this.made;
  }
}

/** How many pieces are made at once. */
const piecesPerSlab = 64;

/**
 * Pieces of native memory of one size, each seen through a DataView that is made once. Taking one and giving it back costs a
 * few nanoseconds, where the C allocator and an ArrayBuffer over its memory cost half a microsecond.
 *
 * Memory that is not needed any more goes back to the C allocator, but for one block of pieces.
 */
export class SlabPool<T> {
  readonly #bytes: number;
  readonly #make: (address: bigint, bytes: DataView<ArrayBuffer>) => T;
  /** Blocks with a free piece. */
  readonly #open: Slab<T>[] = [];
  /** How many of them are free as a whole. */
  #idle = 0;

  /**
   * @param bytes of a piece, a multiple of 8
   * @param make what to make of a piece when it is first taken: it is zeroed then
   */
  constructor(bytes: number, make: (address: bigint, bytes: DataView<ArrayBuffer>) => T) {
    if (!Number.isSafeInteger(bytes) || bytes <= 0 || bytes % 8 !== 0) {
      throw new RangeError(`Cannot make pieces of ${bytes} bytes: expected a positive multiple of 8`);
    }
    this.#bytes = bytes;
    this.#make = make;
  }

  /** A piece, until it is given back. */
  take(): Slot<T> {
    const slab = this.#open.at(-1) ?? this.#grow();
    if (slab.free.length === piecesPerSlab) this.#idle--;
    const piece = slab.free.pop();
    if (piece === undefined) throw new TypeError("Cannot take from a block that has no piece left"); // none such is open
    if (slab.free.length === 0) this.#open.pop();
    piece.made ??= this.#make(piece.address, new DataView(slab.memory, piece.at, this.#bytes));
    return piece;
  }

  /** Gives a piece back, once. */
  give(slot: Slot<T>): void {
    const { slab } = slot as Piece<T>; // nobody else makes slots
    if (slab.free.push(slot as Piece<T>) === 1) this.#open.push(slab);
    if (slab.free.length === piecesPerSlab && ++this.#idle > 1) this.#drop(slab);
  }

  #grow(): Slab<T> {
    const address = allocate(this.#bytes * piecesPerSlab);
    const memory = ffiPort().memory(address, this.#bytes * piecesPerSlab);
    const slab: Slab<T> = { address, memory, free: [] };
    for (let at = 0; at < memory.byteLength; at += this.#bytes) slab.free.push(new Piece(slab, at));
    this.#open.push(slab);
    this.#idle++;
    return slab;
  }

  #drop(slab: Slab<T>): void {
    this.#open.splice(this.#open.indexOf(slab), 1);
    this.#idle--;
    libc().loading.free(slab.address);
  }
}
