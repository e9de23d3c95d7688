/**
 * Many pieces of native memory of one size, for structs that are handed out and freed again and again.
 *
 * @module
 */
import { allocate } from "./arena.ts";
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";

/** A piece of native memory, and what its user made of it. */
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
  /** The free pieces, in a ring: so many from `first` on, the one that has been free for longest first. */
  readonly ring: Piece<T>[];
  first: number;
  free: number;
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
    if (this.made === undefined) throw new TypeError("Cannot use a piece that was never allocated");
    return this.made;
  }
}

/** How many pieces are made at once. */
const piecesPerSlab = 128;

/** How many of them stay free: a piece that was freed is allocated again after at least as many others. */
const resting = 64;

/**
 * Pieces of native memory of one size, each seen through a DataView that is made once. Allocating and freeing one
 * costs a few nanoseconds, where the C allocator and an ArrayBuffer over its memory cost half a microsecond.
 *
 * Memory that is not needed any more goes back to the C allocator, except for one block of pieces. A piece that was
 * freed rests for a while: code that uses its address once more, by mistake, does no harm to its next user.
 */
export class SlabPool<T> {
  readonly #bytes: number;
  readonly #make: (address: bigint, bytes: DataView<ArrayBuffer>) => T;
  /** Blocks that have pieces to allocate. */
  readonly #open: Slab<T>[] = [];
  /** How many of them are free as a whole. */
  #idle = 0;

  /**
   * @param bytes of a piece, a multiple of 8
   * @param make what to make of a piece when it is first allocated: it is zeroed then
   */
  constructor(bytes: number, make: (address: bigint, bytes: DataView<ArrayBuffer>) => T) {
    if (!Number.isSafeInteger(bytes) || bytes <= 0 || bytes % 8 !== 0) {
      throw new RangeError(`Cannot make pieces of ${bytes} bytes: expected a positive multiple of 8`);
    }
    this.#bytes = bytes;
    this.#make = make;
  }

  // law ffi/SlabPool.allocate: ffi/slab
  /** A piece, until it is freed. */
  allocate(): Slot<T> {
    const slab = this.#open.at(-1) ?? this.#grow();
    if (slab.free === piecesPerSlab) this.#idle--;
    const piece = slab.ring[slab.first];
    if (piece === undefined) throw new TypeError("Cannot allocate from a block that has no pieces"); // there is none
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
