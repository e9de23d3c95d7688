/**
 * Memory of ours through which large messages of a pool's and of managed memory go.
 *
 * No other process can map memory of a pool (`cuMemAllocAsync`), nor managed memory. UCX sends it by way of the host,
 * or of fragments of its own: 0.6 to 8 GB/s between two GPUs that copy 380 from memory of no pool (H100s, UCX 1.22). So
 * a message is copied on its GPU, in the order of the buffer's home stream, to or from a piece of memory of no pool, and
 * UCX has the piece. Pieces are kept for the next messages: to allocate and to free waits for the whole GPU, and other
 * processes keep their mappings.
 *
 * @module
 */
import { captureOf, type CudaDevice, type CudaEvent, type CudaStream, enqueueCopy } from "../device/mod.ts";
import { isOutOfMemory, type MemoryBuffer, SynchronousMemoryResource } from "../memory/mod.ts";
import { PendingCopy } from "./pending_copies.ts";

/**
 * Shorter messages are sent as they are. Of 256 KiB, 64 at a time, each takes 19 to 21 us by way of a piece; UCX alone
 * takes 87 us for 64 KiB and 355 for 256 where a peer's end is noticed, 4 and 8 where it is not (H100s, UCX 1.22).
 */
export const stagedFrom: number = 32 << 10;

/** The part of a GPU's memory that pieces may take, if nobody says otherwise: one of so many. */
const share = 16;

/** Memory that UCX has in place of a pool's. */
export interface StagingPiece {
  readonly ptr: bigint;
  /** Enqueues a copy from it or to it. */
  copy(stream: CudaStream, to: bigint, from: bigint, bytes: number): PendingCopy;
  /** Gives it back. A copy may still be under way. */
  giveBack(): void;
}

/** A piece, whether it is lent or not. */
class Piece implements StagingPiece {
  readonly bytes: number;
  readonly ptr: bigint;
  readonly #buffer: MemoryBuffer;
  readonly #window: StagingWindow;
  readonly #event: CudaEvent;
  /** The last one, which may be under way. */
  #copy: PendingCopy | null = null;

  constructor(buffer: MemoryBuffer, event: CudaEvent, window: StagingWindow) {
    this.#buffer = buffer;
    this.#event = event;
    this.#window = window;
    this.bytes = buffer.size;
    this.ptr = buffer.ptr;
  }

  // law ucx/StagingPiece.isFree: ucx/pool_staging
  /** Whether what used it is done: others write to it without asking a stream. After a copy that failed it is not. */
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

  giveBack(): void {
    this.#window.takeBack(this);
  }

  close(): void {
    this.#buffer.close(); // waits for all that the GPU has to do
    this.#event.close();
  }
}

/** The pieces of one GPU. */
class StagingWindow {
  readonly #device: CudaDevice;
  readonly #resource: SynchronousMemoryResource;
  readonly #most: number;
  /** Pieces that are not lent, the last one used at the end. */
  #idle: Piece[] = [];
  /** Bytes of all pieces. */
  #bytes = 0;
  #isClosed = false;

  constructor(device: CudaDevice, most: number) {
    this.#device = device;
    this.#resource = new SynchronousMemoryResource(device);
    this.#most = most;
  }

  // law ucx/StagingWindow.lend: ucx/pool_staging
  lend(bytes: number): Piece | null {
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
      if (isOutOfMemory(error)) return null; // UCX finds its way without
      throw error;
    }
  }

  #free(piece: Piece): void {
    this.#bytes -= piece.bytes;
    piece.close();
  }
}

/** Bytes of the piece for so many: four sizes for each power of two, so that messages of about one size share theirs. */
function pieceSize(bytes: number): number {
  const step = 2 ** (Math.floor(Math.log2(bytes)) - 2);
  return Math.ceil(bytes / step) * step;
}

/** The pieces of all GPUs, of one context of UCX. */
export class PoolStaging {
  readonly #windows = new Map<CudaDevice, StagingWindow>();
  readonly #bytes: number | undefined;
  #isClosed = false;

  /** `bytes`: how many pieces may take on each GPU; by default a sixteenth of its memory. */
  constructor(bytes?: number) {
    this.#bytes = bytes;
  }

  // law ucx/PoolStaging.lend: ucx/pool_staging
  /**
   * A piece for a message of so many bytes of a buffer. Null if UCX is to have the buffer itself: it is of no pool, the
   * message is short, the stream is captured, which takes no copy of ours, or the pieces have all that they may.
   */
  lend(buffer: MemoryBuffer, bytes: number): StagingPiece | null {
    const { device } = buffer;
    if (device === null || this.#isClosed || !this.isFor(buffer, bytes)) return null;
    const most = this.#mostOn(device);
    return this.#windows.getOrInsertComputed(device, () => new StagingWindow(device, most)).lend(bytes);
  }

  /** Whether a message of so many bytes of a buffer goes through a piece, unless too many others do. */
  isFor({ kind, pool, device, stream }: MemoryBuffer, bytes: number): boolean {
    if (device === null || stream === null || !(kind === "managed" || (kind === "device" && pool !== null))) {
      return false;
    }
    return bytes >= stagedFrom && pieceSize(bytes) <= this.#mostOn(device) && captureOf(stream) === null;
  }

  #mostOn(device: CudaDevice): number {
    return this.#bytes ?? Math.floor(device.totalMemory / share);
  }

  /** Frees all pieces, those that UCX has when it gives them back. */
  close(): void {
    this.#isClosed = true;
    for (const window of this.#windows.values()) window.close();
  }
}

/** For what UCX is to have as it is. */
export const notStaged: PoolStaging = new PoolStaging(0);
