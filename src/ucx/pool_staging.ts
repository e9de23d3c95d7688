/**
 * Our own memory, through which large messages in pool and managed memory are staged.
 *
 * No other process can map pool memory (`cuMemAllocAsync`), nor managed memory. UCX sends it through the host, or
 * through fragments of its own: 0.6 to 8 GB/s between two GPUs that reach 380 with non-pool memory (H100s, UCX 1.22).
 * So a message is copied on its GPU, in the order of the buffer's home stream, to or from a piece of non-pool memory,
 * and UCX uses the piece. Pieces are kept for later messages: allocating and freeing wait for the whole GPU, and other
 * processes keep their mappings.
 *
 * @module
 */
import { captureOf, type CudaDevice, type CudaEvent, type CudaStream, enqueueCopy } from "../device/mod.ts";
import { isOutOfMemory, type MemoryBuffer, SynchronousMemoryResource } from "../memory/mod.ts";
import type { Located } from "./memory_route.ts";
import { PendingCopy } from "./pending_copies.ts";

/**
 * Shorter messages are sent directly. Messages of 256 KiB, 64 at a time, take 19 to 21 us each through a piece; UCX
 * alone takes 87 us for 64 KiB and 355 for 256 where a peer's end is detected, 4 and 8 where it is not (H100s, UCX
 * 1.22).
 */
export const stagedFrom: number = 32 << 10;

/** The part of a GPU's memory that pieces may take by default: one in this many. */
const share = 16;

/** Memory that UCX uses in place of pool memory. */
export interface StagingPiece {
  readonly ptr: bigint;
  /** Enqueues a copy from or to it. */
  copy(stream: CudaStream, to: bigint, from: bigint, bytes: number): PendingCopy;
  /** Returns it. A copy may still be in flight. */
  release(): void;
}

/** A piece, in use or not. */
class Piece implements StagingPiece {
  readonly bytes: number;
  readonly ptr: bigint;
  readonly #buffer: MemoryBuffer;
  readonly #window: StagingWindow;
  readonly #event: CudaEvent;
  /** The last copy, which may be in flight. */
  #copy: PendingCopy | null = null;

  constructor(buffer: MemoryBuffer, event: CudaEvent, window: StagingWindow) {
    this.#buffer = buffer;
    this.#event = event;
    this.#window = window;
    this.bytes = buffer.size;
    this.ptr = buffer.ptr;
  }

  // law ucx/StagingPiece.isFree: ucx/pool_staging
  /** Whether its last copy is done: its next users write to it without stream order. After a failed copy it is not. */
  isFree(): boolean {
    if (this.#copy !== null && this.#copy.outcome() !== null) return false;
    this.#copy = null;
    return true;
  }

  copy(stream: CudaStream, to: bigint, from: bigint, bytes: number): PendingCopy {
    enqueueCopy(stream, to, from, bytes, "DtoD");
    stream.record(this.#event);
    this.#copy = new PendingCopy(stream, this.#event);
    return this.#copy;
  }

  release(): void {
    this.#window.takeBack(this);
  }

  close(): void {
    this.#buffer.close(); // waits for all work on the GPU
    this.#event.close();
  }
}

/** The pieces of one GPU. */
class StagingWindow {
  readonly #device: CudaDevice;
  readonly #resource: SynchronousMemoryResource;
  readonly #most: number;
  /** Pieces that are not in use, the most recently used last. */
  #idle: Piece[] = [];
  /** Total size of all pieces, in bytes. */
  #bytes = 0;
  #isClosed = false;

  constructor(device: CudaDevice, most: number) {
    this.#device = device;
    this.#resource = new SynchronousMemoryResource(device);
    this.#most = most;
  }

  // law ucx/StagingWindow.reserve: ucx/pool_staging
  reserve(bytes: number): Piece | null {
    const size = pieceSize(bytes);
    const at = this.#idle.findLastIndex((piece) => piece.bytes === size && piece.isFree());
    const [kept] = at < 0 ? [] : this.#idle.splice(at, 1);
    if (kept !== undefined) return kept;
    while (this.#bytes + size > this.#most) {
      const other = this.#idle.shift(); // of another size, or still in use
      if (other === undefined) return null;
      this.#free(other);
    }
    return this.#make(size);
  }

  // law ucx/StagingWindow.takeBack: ucx/pool_staging
  takeBack(piece: Piece): void {
    if (this.#isClosed) this.#free(piece);
    else this.#idle.push(piece);
  }

  close(): void {
    this.#isClosed = true;
    for (const piece of this.#idle.splice(0)) this.#free(piece);
  }

  // law ucx/StagingWindow.make: ucx/pool_staging
  #make(size: number): Piece | null {
    try {
      const piece = new Piece(this.#resource.allocate(size), this.#device.createEvent(), this);
      this.#bytes += size;
      return piece;
    } catch (error) {
      if (isOutOfMemory(error)) return null; // UCX manages without a piece
      throw error;
    }
  }

  #free(piece: Piece): void {
    this.#bytes -= piece.bytes;
    piece.close();
  }
}

/** The piece size for a message: four sizes per power of two, so that messages of similar size share pieces. */
function pieceSize(bytes: number): number {
  const step = 2 ** (Math.floor(Math.log2(bytes)) - 2);
  return Math.ceil(bytes / step) * step;
}

/** The pieces of all GPUs, for one UCX context. */
export class PoolStaging {
  readonly #windows = new Map<CudaDevice, StagingWindow>();
  readonly #bytes: number | undefined;
  /** Whether UCX knows a GPU: it knows no simulated ones. */
  readonly knows: (device: CudaDevice) => boolean;
  /** The same without pieces, for memory that UCX is to use directly. */
  readonly unstaged: PoolStaging;
  #isClosed = false;

  /**
   * @param bytes the most that pieces may take on each GPU; by default a sixteenth of its memory
   * @param knows whether UCX knows a GPU. Default: it knows all
   */
  constructor(bytes?: number, knows: (device: CudaDevice) => boolean = () => true) {
    this.#bytes = bytes;
    this.knows = knows;
    this.unstaged = bytes === 0 ? this : new PoolStaging(0, knows);
  }

  // law ucx/PoolStaging.reserve: ucx/pool_staging
  /**
   * A piece for a message of `bytes` bytes of a buffer. Null if UCX is to use the buffer itself: it is not pool memory,
   * the message is short, the stream is being captured, which rules out a copy of ours, or the pieces have reached
   * their limit.
   */
  reserve(buffer: MemoryBuffer, bytes: number): StagingPiece | null {
    const { device } = buffer;
    if (device === null || this.#isClosed || !this.isFor(buffer, bytes)) return null;
    const most = this.#mostOn(device);
    return this.#windows.getOrInsertComputed(device, () => new StagingWindow(device, most)).reserve(bytes);
  }

  /** Whether a message of `bytes` bytes of a buffer goes through a piece, unless too many others do. */
  isFor({ kind, pool, device, stream }: Located, bytes: number): boolean {
    if (device === null || stream === null || !(kind === "managed" || (kind === "device" && pool !== null))) {
      return false;
    }
    return this.knows(device) && bytes >= stagedFrom && pieceSize(bytes) <= this.#mostOn(device) &&
      captureOf(stream) === null;
  }

  #mostOn(device: CudaDevice): number {
    return this.#bytes ?? Math.floor(device.totalMemory / share);
  }

  /** Frees all pieces; pieces that UCX uses are freed when they are returned. */
  close(): void {
    this.#isClosed = true;
    for (const window of this.#windows.values()) window.close();
  }
}
