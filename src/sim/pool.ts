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

/** When freed memory may be used again. */
interface Freed {
  /** The free itself. */
  readonly task: Task;
  readonly stream: Stream;
}

/** Memory taken from a pool. */
export interface PoolBlock {
  readonly offset: number;
  /** Bytes of the block: at least what was asked for. */
  readonly bytes: number;
  /** What the allocation has to wait for, because the pool reuses memory whose free nothing else orders before it. */
  readonly after: Task | null;
}

/** Attributes that can be set. */
export interface PoolSettings {
  /** Whether memory is reused on another stream that waits for the free. */
  reuseFollowEventDependencies: boolean;
  /** Whether memory is reused on another stream when the free happens to have run. */
  reuseAllowOpportunistic: boolean;
  /** Whether the pool may make an allocation wait for a free. */
  reuseAllowInternalDependencies: boolean;
  /** Bytes that are kept when the host synchronises. */
  releaseThreshold: bigint;
}

/** A pool. */
export class Pool {
  /** `CUmemoryPool`. */
  readonly handle: bigint;
  /** The device whose memory it is. */
  readonly ordinal: number;
  /** Whether it is the device's default pool. */
  readonly isDefault: boolean;
  /** Bytes that it may take from the device; 0: no limit of its own. */
  readonly maxBytes: number;
  /** The attributes that can be set. */
  readonly settings: PoolSettings = {
    reuseFollowEventDependencies: true,
    reuseAllowOpportunistic: true,
    reuseAllowInternalDependencies: true,
    releaseThreshold: 0n,
  };
  /** Whether it can be exported to other processes. */
  isShareable = false;
  /** The pool of another driver that this one stands for; nothing can be allocated from it then. */
  origin: Pool | null = null;
  /** How often it was imported and not destroyed since. */
  imports = 0;
  /** Whether cuMemPoolDestroy() was called: what is allocated lives on. */
  destroyed = false;
  /** Most bytes that were ever taken from the device, since this was last reset. */
  reservedHigh = 0;
  /** Most bytes that were ever allocated, since this was last reset. */
  usedHigh = 0;
  readonly #heap: Heap<Freed>;
  readonly #scheduler: Scheduler;
  readonly #access = new Map<number, number>();
  #used = 0;
  /** Frees that had not run at the last check. */
  #frees: Task[] = [];

  /** An empty pool. */
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

  /** Whether memory is allocated, or a free of it has not run. */
  get isBusy(): boolean {
    this.#frees = this.#frees.filter(({ done }) => !done);
    return this.#used > 0 || this.#frees.length > 0;
  }

  /** What a device may do with the memory: `CU_MEM_ACCESS_FLAGS_PROT`. The owner may always do everything. */
  access(ordinal: number): number {
    if (ordinal === this.ordinal) return CU_MEM_ACCESS_FLAGS_PROT.READWRITE;
    return this.#access.get(ordinal) ?? CU_MEM_ACCESS_FLAGS_PROT.NONE;
  }

  /** Changes what a device may do. */
  setAccess(ordinal: number, flags: number): void {
    this.#access.set(ordinal, flags);
  }

  /**
   * Takes memory for an allocation on a stream: memory that was freed last, if the rules allow it.
   *
   * @param preferReuse whether to wait for a free, if the settings allow it, rather than to take new memory
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

  /** Takes memory back, for the allocations that may reuse it. */
  release(offset: number, wanted: number, stream: Stream, task: Task): void {
    const bytes = roundUp(wanted, blockBytes);
    this.#used -= wanted;
    if (!task.done) this.#frees = [...this.#frees.filter(({ done }) => !done), task];
    this.#heap.release({ offset, bytes, tag: task.done ? null : { task, stream } });
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
    // Of a task that has run it is not known any more what comes after it.
    if (tag.task.done ? settings.reuseAllowOpportunistic : this.#isFollowed(tag.task, stream)) return true;
    return mayWait && settings.reuseAllowInternalDependencies;
  }

  // law sim/Pool.isFollowed: sim/pools
  #isFollowed(free: Task, stream: Stream): boolean {
    return this.settings.reuseFollowEventDependencies && this.#scheduler.follows(stream.tail, free);
  }
}
