/**
 * The memory that a driver's calls speak of: what is allocated, what was freed, and what was done to it.
 *
 * @module
 */
import { type Access, History, isBefore, Spans } from "./access_history.ts";
import { type Interval, Intervals } from "./interval_map.ts";
import type { Clock, ContextOrder, Order } from "./vector_clocks.ts";
import type { Site } from "./call_site.ts";

/** Kinds of memory, as the simulator names them; `imported` came from another process. */
export type MemoryKind = "device" | "pool" | "managed" | "pinned" | "registered" | "imported";

/** Memory that was allocated and not freed. */
export class Known implements Interval {
  /** Address of the first byte. */
  readonly start: number;
  /** The first address behind it. */
  readonly end: number;
  /** What it is. */
  readonly kind: MemoryKind;
  /** The context that was current. */
  readonly context: ContextOrder | null;
  /** The function that made it. */
  readonly call: string;
  /** Where that was. */
  readonly site: Site;
  /** Its number in the journal. */
  readonly born: number;
  /** How often it was opened, if it is another process' memory. */
  opened = 1;
  /** What it is there that has exported it, if that is known. */
  origin: Known | null = null;
  /** How it was freed, if it was. */
  gone: Freed | null = null;
  /** Whether the driver was told to make all copies and fills of it wait. */
  syncMemops = false;
  readonly #spans = new Spans();
  /** What was done to all of it at once. */
  readonly #whole = new History();
  /** Kernels that were given it: the last one of each stream and each way to use it. */
  #kernels: readonly Access[] = [];

  /** Memory that is allocated now. */
  constructor(
    start: number,
    bytes: number,
    kind: MemoryKind,
    context: ContextOrder | null,
    call: string,
    site: Site,
    born: number,
  ) {
    this.born = born;
    this.start = start;
    this.end = start + bytes;
    this.kind = kind;
    this.context = context;
    this.call = call;
    this.site = site;
  }

  /** Whether the bytes are the host's, page-locked. */
  get isPinned(): boolean {
    return this.kind === "pinned" || this.kind === "registered";
  }

  /** Whether the host can read and write the bytes as they are. */
  get isOfHost(): boolean {
    return this.isPinned || this.kind === "managed";
  }

  /** Adds an access to bytes of it; says what it is unordered with. */
  touch(access: Access, start: number, end: number, clock: Clock, order: Order): Access | null {
    const conflict = this.#spans.touch(access, start, end, clock, order);
    if (start > this.start || end < this.end) return conflict;
    const writes = access.writes === true;
    this.#whole.add(access, order);
    const kernel = this.#kernel(writes, clock);
    if (writes) this.#kernels = [];
    return conflict ?? kernel;
  }

  /** What something with this clock would be unordered with, if it touched these bytes. */
  conflict(writes: boolean, start: number, end: number, clock: Clock): Access | null {
    const conflict = this.#spans.conflict(writes, start, end, clock);
    return start > this.start || end < this.end ? conflict : conflict ?? this.#kernel(writes, clock);
  }

  /** A kernel that something which touches all bytes is unordered with. */
  #kernel(writes: boolean, clock: Clock): Access | null {
    return this.#kernels.find((one) => (writes || one.writes === true) && !isBefore(one, clock)) ?? null;
  }

  /**
   * Adds a kernel that was given this memory. It uses some of its bytes, nobody knows which: that certainly concerns
   * whoever touches all of them, and perhaps whoever else does.
   */
  touchByKernel(access: Access, clock: Clock, order: Order): Access | null {
    const conflict = this.#whole.conflict(access.writes === true, clock);
    const kept = this.#kernels.filter((one) =>
      !order.isOver(one.lane.index, one.tick) && (one.lane.index !== access.lane.index || one.writes !== access.writes)
    );
    kept.push(access);
    this.#kernels = kept;
    return conflict;
  }
}

/** Memory that was freed and, as far as was seen, not allocated again. */
export interface Freed extends Interval {
  readonly known: Known;
  readonly call: string;
  readonly lane: string;
  readonly site: Site;
  readonly seq: number;
}

/** More freed memory than this is not remembered: the older half is forgotten. */
const mostFreed = 8192;

/** All memory that calls have spoken of. */
export class Memory {
  readonly #known = new Intervals<Known>();
  readonly #freed = new Intervals<Freed>();
  /** Memory that the driver did not allocate: pageable memory of the host, or of another library. */
  readonly #foreign = new Spans();

  /** What is allocated, by ascending address. */
  get known(): readonly Known[] {
    return this.#known.all;
  }

  /** The allocation that holds an address. */
  find(address: number): Known | undefined {
    return this.#known.find(address);
  }

  /** What was freed at an address, if nothing is there now. */
  freedAt(address: number): Freed | undefined {
    return this.#freed.find(address);
  }

  /** Memory is allocated: whatever was there before is over, also if somebody else has freed it. */
  allocate(known: Known): void {
    this.#known.removeOverlapping(known.start, known.end);
    this.#foreign.forget(known.start, known.end);
    this.#known.add(known);
  }

  /** Memory is freed. */
  free(freed: Freed): void {
    freed.known.gone = freed;
    this.#known.remove(freed.known);
    this.#freed.removeOverlapping(freed.start, freed.end);
    this.#freed.add(freed);
    if (this.#freed.count <= mostFreed) return;
    const limit = this.#freed.all.map(({ seq }) => seq).sort((a, b) => a - b)[mostFreed >> 1] ?? 0;
    this.#freed.retain(({ seq }) => seq > limit);
  }

  /** Memory is no longer ours to watch: its context is gone, or the driver knows more of it than was seen. */
  forget(item: Known | Freed): void {
    if (item instanceof Known) this.#known.remove(item);
    else this.#freed.remove(item);
  }

  /** The allocations that some bytes are of. */
  *at(start: number, end: number): Generator<{ readonly known: Known; readonly from: number; readonly to: number }> {
    let index = this.#known.indexAt(start);
    for (let known = this.#known.at(index); known !== undefined && known.start < end; known = this.#known.at(++index)) {
      yield { known, from: Math.max(start, known.start), to: Math.min(end, known.end) };
    }
  }

  /** Adds an access to bytes that may be of several allocations; says what it is unordered with. */
  touch(access: Access, start: number, end: number, clock: Clock, order: Order): Access | null {
    let conflict: Access | null = null;
    for (let at = start; at < end;) {
      const index = this.#known.indexAt(at);
      const known = this.#known.at(index);
      const isHere = known !== undefined && known.start <= at;
      const to = Math.min(end, known === undefined ? end : isHere ? known.end : known.start);
      const memory = isHere ? known : this.#foreign;
      conflict = memory.touch(access, at, to, clock, order) ?? conflict;
      at = to;
    }
    return conflict;
  }

  /**
   * What the host would be unordered with if it read or wrote these bytes now. What the host does is over before anything else
   * begins, so that nothing has to be kept of it.
   */
  conflictWithHost(writes: boolean, start: number, end: number, order: Order): Access | null {
    let conflict: Access | null = null;
    for (let at = start; at < end && conflict === null;) {
      const known = this.#known.at(this.#known.indexAt(at));
      const isHere = known !== undefined && known.start <= at;
      const to = Math.min(end, known === undefined ? end : isHere ? known.end : known.start);
      conflict = (isHere ? known : this.#foreign).conflict(writes, at, to, order.host);
      at = to;
    }
    return conflict;
  }
}
