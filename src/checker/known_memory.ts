/**
 * The memory that calls have named: what is allocated, what was freed, and the accesses to it.
 *
 * @module
 */
import { type Access, History, isBefore, RangeHistory } from "./access_history.ts";
import { type Interval, IntervalSet } from "./interval_set.ts";
import type { Clock, ContextClock, VectorClocks } from "./vector_clocks.ts";
import type { CallSite } from "./call_site.ts";

/** Kinds of memory, as the simulator names them; `imported` came from another process. */
export type MemoryKind = "device" | "pool" | "managed" | "pinned" | "registered" | "imported";

/** Memory that was allocated and not freed. */
export class Allocation implements Interval {
  /** Address of the first byte. */
  readonly start: number;
  /** The address after its last byte. */
  readonly end: number;
  /** Its kind. */
  readonly kind: MemoryKind;
  /** The context that was current. */
  readonly context: ContextClock | null;
  /** The function that allocated it. */
  readonly call: string;
  /** Where that function was called. */
  readonly site: CallSite;
  /** Its number in the journal. */
  readonly allocatedAt: number;
  /** The user's name for it. */
  name: string | null = null;
  /** How often it was opened, if it is another process's memory. */
  opened = 1;
  /** The allocation that was exported, if known. */
  origin: Allocation | null = null;
  /** How it was freed, if it was. */
  freed: Freed | null = null;
  /** Whether all copies and fills of it are synchronous: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
  syncMemops = false;
  readonly #spans = new RangeHistory();
  /** Accesses to all of it at once. */
  readonly #whole = new History();
  /** Kernels that it was passed to: the last one of each stream, separately by whether they write. */
  #kernels: readonly Access[] = [];

  /** Memory that has just been allocated. */
  constructor(
    start: number,
    bytes: number,
    kind: MemoryKind,
    context: ContextClock | null,
    call: string,
    site: CallSite,
    born: number,
  ) {
    this.allocatedAt = born;
    this.start = start;
    this.end = start + bytes;
    this.kind = kind;
    this.context = context;
    this.call = call;
    this.site = site;
  }

  /** Whether it is page-locked host memory. */
  get isPinned(): boolean {
    return this.kind === "pinned" || this.kind === "registered";
  }

  /** Whether the host can read and write the bytes directly. */
  get isOfHost(): boolean {
    return this.isPinned || this.kind === "managed";
  }

  // law checker/Allocation.touch: checker/pending_call
  /** Adds an access to some of its bytes. @returns the access that it is unordered with, or null */
  touch(access: Access, start: number, end: number, clock: Clock, order: VectorClocks): Access | null {
    const conflict = this.#spans.touch(access, start, end, clock, order);
    if (start > this.start || end < this.end) return conflict;
    const writes = access.writes === true;
    this.#whole.add(access, order);
    const kernel = this.#kernel(writes, clock);
    if (writes) this.#kernels = [];
    return conflict ?? kernel;
  }

  /** The access that work with this clock would be unordered with if it touched these bytes, or null. */
  conflict(writes: boolean, start: number, end: number, clock: Clock): Access | null {
    const conflict = this.#spans.conflict(writes, start, end, clock);
    return start > this.start || end < this.end ? conflict : conflict ?? this.#kernel(writes, clock);
  }

  /** A kernel that an access to all bytes is unordered with, or null. */
  #kernel(writes: boolean, clock: Clock): Access | null {
    return this.#kernels.find((one) => (writes || one.writes === true) && !isBefore(one, clock)) ?? null;
  }

  // law checker/Allocation.touchByKernel: checker/pending_call
  /**
   * Adds a kernel that this memory was passed to. It uses some of the bytes, unknown which: so it certainly conflicts
   * with an access to all of them, and only possibly with an access to some.
   */
  touchByKernel(access: Access, clock: Clock, order: VectorClocks): Access | null {
    const conflict = this.#whole.conflict(access.writes === true, clock);
    const kept = this.#kernels.filter((one) =>
      !order.isOver(one.stream.index, one.tick) &&
      (one.stream.index !== access.stream.index || one.writes !== access.writes)
    );
    kept.push(access);
    this.#kernels = kept;
    return conflict;
  }
}

/** Memory that was freed and, as far as known, not allocated again. */
export interface Freed extends Interval {
  readonly allocation: Allocation;
  readonly call: string;
  readonly stream: string;
  readonly site: CallSite;
  readonly seq: number;
}

/** The most freed allocations that are remembered: beyond this, the older half is forgotten. */
const maxFreed = 8192;

/** All memory that calls have named. */
export class KnownMemory {
  readonly #allocations = new IntervalSet<Allocation>();
  readonly #freed = new IntervalSet<Freed>();
  /** Memory that the driver did not allocate: pageable memory of the host, or of another library. */
  readonly #foreign = new RangeHistory();

  /** The live allocations, by ascending address. */
  get allocations(): readonly Allocation[] {
    return this.#allocations.all;
  }

  /** The allocation that contains an address. */
  find(address: number): Allocation | undefined {
    return this.#allocations.find(address);
  }

  /** The memory freed at an address, meaningful only if nothing is allocated there now. */
  freedAt(address: number): Freed | undefined {
    return this.#freed.find(address);
  }

  /**
   * Notes that memory is allocated: what was there before has been freed, if not through this driver then by another
   * library.
   */
  allocate(allocation: Allocation): void {
    this.#allocations.removeOverlapping(allocation.start, allocation.end);
    this.#foreign.forget(allocation.start, allocation.end);
    this.#allocations.add(allocation);
  }

  // law checker/KnownMemory.newHostMemory: checker/new_host_memory
  /** Notes that memory which the driver did not allocate is new. */
  newHostMemory(start: number, end: number): void {
    this.#foreign.forget(start, end);
  }

  /** Notes that memory is freed. */
  free(freed: Freed): void {
    freed.allocation.freed = freed;
    this.#allocations.remove(freed.allocation);
    this.#freed.removeOverlapping(freed.start, freed.end);
    this.#freed.add(freed);
    if (this.#freed.count <= maxFreed) return;
    const limit = this.#freed.all.map(({ seq }) => seq).sort((a, b) => a - b)[maxFreed >> 1] ?? 0;
    this.#freed.retain(({ seq }) => seq > limit);
  }

  /** Stops following memory: its context is gone, or another library has allocated it again. */
  forget(item: Allocation | Freed): void {
    if (item instanceof Allocation) this.#allocations.remove(item);
    else this.#freed.remove(item);
  }

  /** The allocations that contain some bytes. */
  *at(
    start: number,
    end: number,
  ): Generator<{ readonly allocation: Allocation; readonly from: number; readonly to: number }> {
    let index = this.#allocations.indexAt(start);
    for (
      let allocation = this.#allocations.at(index);
      allocation !== undefined && allocation.start < end;
      allocation = this.#allocations.at(++index)
    ) {
      yield { allocation, from: Math.max(start, allocation.start), to: Math.min(end, allocation.end) };
    }
  }

  /**
   * Adds an access to bytes that may span several allocations.
   *
   * @returns the access that it is unordered with, or null
   */
  touch(access: Access, start: number, end: number, clock: Clock, order: VectorClocks): Access | null {
    let conflict: Access | null = null;
    for (let at = start; at < end;) {
      const index = this.#allocations.indexAt(at);
      const allocation = this.#allocations.at(index);
      const isHere = allocation !== undefined && allocation.start <= at;
      const to = Math.min(end, allocation === undefined ? end : isHere ? allocation.end : allocation.start);
      const memory = isHere ? allocation : this.#foreign;
      conflict = memory.touch(access, at, to, clock, order) ?? conflict;
      at = to;
    }
    return conflict;
  }

  /**
   * The access that the host would be unordered with if it read or wrote these bytes now. Accesses by the host have
   * completed before anything else begins, so they need not be kept.
   */
  conflictWithHost(writes: boolean, start: number, end: number, order: VectorClocks): Access | null {
    let conflict: Access | null = null;
    for (let at = start; at < end && conflict === null;) {
      const allocation = this.#allocations.at(this.#allocations.indexAt(at));
      const isHere = allocation !== undefined && allocation.start <= at;
      const to = Math.min(end, allocation === undefined ? end : isHere ? allocation.end : allocation.start);
      conflict = (isHere ? allocation : this.#foreign).conflict(writes, at, to, order.host);
      at = to;
    }
    return conflict;
  }
}
