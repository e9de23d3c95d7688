/**
 * Many fixed-size pieces of native memory, for structs that are allocated and freed again and again.
 *
 * @module
 */
import { allocate } from "./arena.ts";
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";

/** A piece of native memory, and the object made over it. */
export interface Slot<T> {
  /** Its address. */
  readonly address: bigint;
  /** The object made over it, once; what its last user wrote there is still there. */
  readonly content: T;
}

/** One block of the C allocator, cut into pieces. */
interface Slab<T> {
  readonly address: bigint;
  readonly memory: ArrayBuffer;
  /** The free pieces, in a ring: `free` of them from `first` on, the longest free first. */
  readonly ring: Piece<T>[];
  first: number;
  free: number;
}

/** A piece, with its block and its offset there. Its content is made when it is first needed. */
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
    if (this.made === undefined) throw new TypeError("Cannot use a piece that was never allocated");
    return this.made;
  }
}

/** How many pieces a block has. */
const piecesPerSlab = 128;

/** How many of them stay free: a freed piece is allocated again only after at least as many others. */
const resting = 64;

/**
 * Fixed-size pieces of native memory, each viewed through a DataView that is made once. Allocating and freeing one
 * costs a few nanoseconds, where the C allocator and an ArrayBuffer over its memory cost half a microsecond.
 *
 * Unused memory is returned to the C allocator, except for one block of pieces. A freed piece rests for a while, so
 * that code which mistakenly uses its address once more does not harm its next user.
 */
export class SlabPool<T> {
  readonly #bytes: number;
  readonly #make: (address: bigint, bytes: DataView<ArrayBuffer>) => T;
  /** Blocks that have pieces to allocate. */
  readonly #open: Slab<T>[] = [];
  /** How many of them are entirely free. */
  #idle = 0;

  /**
   * @param bytes size of a piece, a multiple of 8
   * @param make makes the content of a piece when it is first allocated: it is zeroed then
   */
  constructor(bytes: number, make: (address: bigint, bytes: DataView<ArrayBuffer>) => T) {
    if (!Number.isSafeInteger(bytes) || bytes <= 0 || bytes % 8 !== 0) {
      throw new RangeError(`Cannot make pieces of ${bytes} bytes: expected a positive multiple of 8`);
    }
    this.#bytes = bytes;
    this.#make = make;
  }

  // law ffi/SlabPool.allocate: ffi/slab
  /** Allocates a piece. */
  allocate(): Slot<T> {
    const slab = this.#open.at(-1) ?? this.#grow();
    if (slab.free === piecesPerSlab) this.#idle--;
    const piece = slab.ring[slab.first];
    if (piece === undefined) throw new TypeError("Cannot allocate from a block that has no pieces"); // never happens
    slab.first = (slab.first + 1) % piecesPerSlab;
    if (--slab.free === resting) this.#open.pop();
    piece.made ??= this.#make(piece.address, new DataView(slab.memory, piece.at, this.#bytes));
    return piece;
  }

  // law ffi/SlabPool.free: ffi/slab
  /** Frees a piece, once. */
  free(slot: Slot<T>): void {
    const { slab } = slot as Piece<T>; // nothing else makes slots
    slab.ring[(slab.first + slab.free) % piecesPerSlab] = slot as Piece<T>;
    if (++slab.free === resting + 1) this.#open.push(slab);
    if (slab.free === piecesPerSlab && ++this.#idle > 1) this.#drop(slab);
  }

  #grow(): Slab<T> {
    const address = allocate(this.#bytes * piecesPerSlab);
    const memory = ffiPort().memory(address, this.#bytes * piecesPerSlab);
    const slab: Slab<T> = { address, memory, ring: [], first: 0, free: piecesPerSlab };
    for (let at = 0; at < memory.byteLength; at += this.#bytes) slab.ring.push(new Piece(slab, at));
    this.#open.push(slab);
    this.#idle++;
    return slab;
  }

  // law ffi/SlabPool.drop: ffi/slab
  #drop(slab: Slab<T>): void {
    this.#open.splice(this.#open.indexOf(slab), 1);
    this.#idle--;
    libc().loading.free(slab.address);
  }
}
