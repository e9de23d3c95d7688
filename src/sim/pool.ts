/**
 * Memory pools: memory that is allocated and freed in stream order.
 *
 * @module
 */
import { CU_MEM_ACCESS_FLAGS_PROT } from "../../bindings/cuda_types.ts";
import { roundUp } from "../ffi/mod.ts";
import { blockBytes, type FreeBlock, Heap, type Segments } from "./allocator.ts";
import type { Stream } from "./objects.ts";
import type { Scheduler, Task } from "./scheduler.ts";

/** The free that decides when memory may be reused. */
interface Freed {
  /** The free itself. */
  readonly task: Task;
  readonly stream: Stream;
  /** If the stream was destroyed before the free had run: the last task enqueued by then. */
  orphanedAt?: number;
}

// law sim/isUnfinished: sim/pools
/**
 * Whether libcuda (580) still refers to the pool because of a free: until it has run, and if its stream was destroyed
 * before that, until the host has seen the end of a context's work that was marked, or waited for, after that.
 */
function isUnfinished({ task, stream, orphanedAt = -1 }: Freed): boolean {
  return !task.done || orphanedAt >= stream.context.seen;
}

/** Fewer are not worth a look. */
const minFreesToCheck = 64;

/** Memory taken from a pool. */
export interface PoolBlock {
  readonly offset: number;
  /** Size of the block in bytes: at least the requested size. */
  readonly bytes: number;
  /** The free that the allocation must wait for, because nothing else orders that free before the reuse. */
  readonly after: Task | null;
}

/** Writable attributes. */
export interface PoolSettings {
  /** Whether memory is reused on another stream that waits for the free. */
  reuseFollowEventDependencies: boolean;
  /** Whether memory is reused on another stream if the free happens to have run. */
  reuseAllowOpportunistic: boolean;
  /** Whether the pool may make an allocation wait for a free. */
  reuseAllowInternalDependencies: boolean;
  /** Bytes that the pool keeps when the host synchronises. */
  releaseThreshold: bigint;
}

/** A pool. */
export class Pool {
  /** `CUmemoryPool`. */
  readonly handle: bigint;
  /** The device that the memory belongs to. */
  readonly ordinal: number;
  /** Whether it is the device's default pool. */
  readonly isDefault: boolean;
  /** Bytes that the pool may take from the device; 0: no limit of its own. */
  readonly maxBytes: number;
  /** The writable attributes. */
  readonly settings: PoolSettings = {
    reuseFollowEventDependencies: true,
    reuseAllowOpportunistic: true,
    reuseAllowInternalDependencies: true,
    releaseThreshold: 0n,
  };
  /** Whether the pool can be exported to other processes. */
  isShareable = false;
  /** Another driver's pool that this one was imported from; nothing can be allocated from an imported pool. */
  origin: Pool | null = null;
  /** Number of imports not yet destroyed. */
  imports = 0;
  /** Whether cuMemPoolDestroy() was called: its allocations live on. */
  destroyed = false;
  /** High-water mark of bytes taken from the device, since the last reset. */
  reservedHigh = 0;
  /** High-water mark of bytes allocated, since the last reset. */
  usedHigh = 0;
  readonly #heap: Heap<Freed>;
  readonly #scheduler: Scheduler;
  readonly #access = new Map<number, number>();
  #used = 0;
  /** Frees that the driver may not have finished with, and how many are worth a check. */
  #frees: Freed[] = [];
  #checkAt = minFreesToCheck;

  /** Creates an empty pool. */
  constructor(
    handle: bigint,
    ordinal: number,
    isDefault: boolean,
    maxBytes: number,
    segments: Segments,
    scheduler: Scheduler,
  ) {
    this.handle = handle;
    this.ordinal = ordinal;
    this.isDefault = isDefault;
    this.maxBytes = maxBytes;
    this.#heap = new Heap(segments);
    this.#scheduler = scheduler;
  }

  /** Bytes taken from the device. */
  get reserved(): number {
    return this.#heap.reserved;
  }

  /** Bytes allocated. */
  get used(): number {
    return this.#used;
  }

  // law sim/Pool.isBusy: sim/pools
  /** Whether any memory is allocated, or the driver has not finished with any free. */
  get isBusy(): boolean {
    this.#forgetFinished();
    return this.#used > 0 || this.#frees.length > 0;
  }

  /** Notes that a stream was destroyed, of which some frees may not have run. */
  orphan(ended: Stream, lastTask: number): void {
    for (const free of this.#frees) if (free.stream === ended && !free.task.done) free.orphanedAt = lastTask;
  }

  /** A device's access to the memory: `CU_MEM_ACCESS_FLAGS_PROT`. The owner always has full access. */
  access(ordinal: number): number {
    if (ordinal === this.ordinal) return CU_MEM_ACCESS_FLAGS_PROT.READWRITE;
    return this.#access.get(ordinal) ?? CU_MEM_ACCESS_FLAGS_PROT.NONE;
  }

  /** Changes a device's access. */
  setAccess(ordinal: number, flags: number): void {
    this.#access.set(ordinal, flags);
  }

  /**
   * Takes memory for an allocation on a stream: the most recently freed memory, if the rules allow it.
   *
   * @param preferReuse whether to wait for a free, if the settings allow it, rather than take new memory
   * @returns null if there is not enough
   */
  allocate(wanted: number, stream: Stream, preferReuse: boolean): PoolBlock | null {
    const bytes = roundUp(wanted, blockBytes);
    const found = this.#reuse(bytes, stream, preferReuse) ?? this.#grow(bytes) ?? this.#reuse(bytes, stream, true);
    if (found === null) return null;
    this.#used += wanted;
    this.usedHigh = Math.max(this.usedHigh, this.#used);
    this.reservedHigh = Math.max(this.reservedHigh, this.reserved);
    return found;
  }

  /** Takes memory back, for allocations that may reuse it. */
  release(offset: number, wanted: number, stream: Stream, task: Task): void {
    const bytes = roundUp(wanted, blockBytes);
    this.#used -= wanted;
    const freed: Freed | null = task.done ? null : { task, stream };
    if (freed !== null && this.#frees.push(freed) >= this.#checkAt) this.#forgetFinished();
    this.#heap.release({ offset, bytes, tag: freed });
  }

  /** Checks again only once there are twice as many frees as are left, so that the cost of each is constant. */
  #forgetFinished(): void {
    this.#frees = this.#frees.filter(isUnfinished);
    this.#checkAt = Math.max(minFreesToCheck, 2 * this.#frees.length);
  }

  /** Returns unused segments to the device, as long as at least `keep` bytes remain. */
  trim(keep: bigint): void {
    if (BigInt(this.reserved) <= keep) return;
    this.#heap.trim(Number(keep), ({ task }) => task.done); // at most what is reserved: a safe integer
  }

  // law sim/Pool.reuse: sim/pools
  #reuse(bytes: number, stream: Stream, mayWait: boolean): PoolBlock | null {
    let block = this.#heap.reuse(bytes, (one) => this.#isUsable(one, stream, mayWait));
    if (block === null) {
      this.#heap.join(({ task }) => task.done && this.settings.reuseAllowOpportunistic);
      block = this.#heap.reuse(bytes, (one) => this.#isUsable(one, stream, mayWait));
    }
    return block === null ? null : { offset: block.offset, bytes: block.bytes, after: block.tag?.task ?? null };
  }

  // law sim/Pool.grow: sim/refusals
  #grow(bytes: number): PoolBlock | null {
    if (this.maxBytes > 0 && this.reserved + bytes > this.maxBytes) return null;
    const offset = this.#heap.grow(bytes);
    return offset === null ? null : { offset, bytes, after: null };
  }

  // law sim/Pool.isUsable: sim/pools
  #isUsable({ tag }: FreeBlock<Freed>, stream: Stream, mayWait: boolean): boolean {
    if (tag === null || tag.stream === stream) return true;
    const { settings } = this;
    // Once a task has run, it is no longer known what follows it.
    if (tag.task.done ? settings.reuseAllowOpportunistic : this.#isFollowed(tag.task, stream)) return true;
    return mayWait && settings.reuseAllowInternalDependencies;
  }

  // law sim/Pool.isFollowed: sim/pools
  #isFollowed(free: Task, stream: Stream): boolean {
    return this.settings.reuseFollowEventDependencies && this.#scheduler.follows(stream.tail, free);
  }
}
