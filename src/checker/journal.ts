/**
 * What kernels have actually touched. Only some drivers let that be observed, and only when the kernel runs, which may
 * be long after the launch: until then all accesses are recorded, each with its clock, for comparison with the
 * kernel's.
 *
 * @module
 */
import type { KernelAccess, KernelObserver } from "../driver/mod.ts";
import { type Access, isBefore } from "./access_history.ts";
import type { Allocation } from "./known_memory.ts";
import type { VectorClocks } from "./vector_clocks.ts";
import { RangeIndex } from "./range_index.ts";
import type { CausalityCall } from "./report.ts";

/** Bytes that a kernel has touched. */
interface Touched {
  readonly start: number;
  readonly end: number;
  readonly writes: boolean;
  /** Whether other threads may access them concurrently: atomic and volatile accesses do not race with each other. */
  readonly isStrong: boolean;
}

/** Beyond this many pieces, adjacent ones are joined before more are added. */
const manyPieces = 1 << 14;

/** What the kernels of one call have touched so far. */
export class KernelRecording implements KernelObserver {
  /**
   * Whether a kernel may signal the host before the host has waited for it: by atomic or volatile writes to host
   * memory.
   */
  signalsHost = false;
  /** Kernels that have not completed. */
  #left: number;
  #whenOver: (() => void) | null = null;
  #signals: string | null = null;
  #pieces: Touched[] = [];
  #joinAt = manyPieces;

  /** @param kernels the number of kernels */
  constructor(kernels: number) {
    this.#left = kernels;
  }

  /** Has a function called once all of them have completed: now, if they have. */
  whenOver(call: () => void): void {
    this.#whenOver = call;
    if (this.#left <= 0) call();
  }

  // law checker/KernelRecording.accessed: checker/kernels
  /** Records an access to bytes. */
  accessed(address: bigint, bytes: number, access: KernelAccess): void {
    const start = Number(address);
    const writes = access === "atomic" || access.endsWith("write");
    this.#pieces.push({ start, end: start + bytes, writes, isStrong: access !== "read" && access !== "write" });
    if (this.#pieces.length < this.#joinAt) return;
    this.#pieces = this.touches();
    this.#joinAt = 2 * this.#pieces.length + manyPieces;
  }

  /** Notes that a kernel has completed. */
  ended(): void {
    if (--this.#left === 0) this.#whenOver?.();
  }

  /** The bytes by which the kernels, which have completed, may synchronise with others; empty if there are none. */
  get signals(): string {
    return this.#signals ??= this.touches().filter(({ isStrong }) => isStrong)
      .map(({ start, end, writes }) => `${writes ? "w" : "r"}${start}-${end}`).join();
  }

  /** What was touched, in as few pieces as possible. */
  touches(): Touched[] {
    return [true, false].flatMap((writes) => [true, false].flatMap((isStrong) => this.#joined(writes, isStrong)));
  }

  // law checker/KernelRecording.joined: checker/kernels
  #joined(writes: boolean, isStrong: boolean): Touched[] {
    const joined: { start: number; end: number; readonly writes: boolean; readonly isStrong: boolean }[] = [];
    const alike = this.#pieces.filter((one) => one.writes === writes && one.isStrong === isStrong);
    for (const { start, end } of alike.sort((a, b) => a.start - b.start)) {
      const last = joined.at(-1);
      if (last !== undefined && start <= last.end) last.end = Math.max(last.end, end);
      else joined.push({ start, end, writes, isStrong });
    }
    return joined;
  }
}

/** The kernels of one call, with their place in the order. */
interface KernelLaunch {
  readonly recording: KernelRecording;
  /** The call. Its bytes are not known yet: it has none. */
  readonly access: Access;
  /** What it comes after. */
  readonly clock: readonly number[];
  /** Its number in the journal. */
  readonly at: number;
}

/** An access to bytes of an allocation, by a call on a stream or by the host. */
interface Entry {
  readonly at: number;
  readonly allocation: Allocation;
  readonly start: number;
  readonly end: number;
  readonly writes: boolean;
  /** The call on a stream; null for an access by the host. */
  readonly access: Access | null;
  /** The host's access. */
  readonly host: CausalityCall | null;
  /** What it comes after. */
  readonly clock: readonly number[];
  /** The kernels that made the access, if kernels did. */
  readonly run: KernelLaunch | null;
  readonly isStrong: boolean;
}

/** A kernel, and the access that it is unordered with. */
export interface KernelRace {
  readonly kernel: Access;
  readonly other: Access | CausalityCall;
  /** Whether the kernel's call was the first of the two. */
  readonly isFirst: boolean;
  readonly allocation: Allocation;
}

/** The most entries that are kept: beyond this, the older half is forgotten. */
const maxEntries = 1 << 16;

/** As long as there are no more entries, none is looked for that can be forgotten. */
const fewEntries = 64;

/** Accesses, by allocation. */
type Entries = Map<Allocation, RangeIndex<Entry>>;

/** Accesses, kept as long as a kernel may turn out to be unordered with them. */
export class Journal {
  readonly #order: VectorClocks;
  /** The accesses by calls and by the host, other than by kernels. */
  readonly #entries: Entries = new Map();
  /** The accesses by kernels that have run. */
  readonly #ofKernels: Entries = new Map();
  /** How many there are of both. */
  #count = 0;
  /** Kernels that have not been compared, in the order of their launches, and those of them that have completed. */
  readonly #running = new Set<KernelLaunch>();
  #ended: KernelLaunch[] = [];
  #races: KernelRace[] = [];
  /** Memory that was freed before kernels had run. */
  #freed: Allocation[] = [];
  #now = 0;
  #sweepAt = fewEntries;

  /** An empty journal. */
  constructor(order: VectorClocks) {
    this.#order = order;
  }

  /** A number that increases with each call. */
  next(): number {
    return ++this.#now;
  }

  /** Whether there is nothing to compare or report: no kernel is in flight, and no race was found. */
  get isIdle(): boolean {
    return this.#running.size === 0 && this.#races.length === 0;
  }

  /** Whether it knows of kernels: if not, accesses by the host need not be noted. */
  get knowsKernels(): boolean {
    return this.#running.size > 0 || this.#ofKernels.size > 0;
  }

  /** Adds launched kernels. `takeRaces` compares them once they have completed. */
  launched(recording: KernelRecording, access: Access, clock: readonly number[], at: number): void {
    const launch = { recording, access, clock, at };
    this.#running.add(launch);
    recording.whenOver(() => void this.#ended.push(launch));
  }

  /** Notes that memory is freed, so that its addresses may be reused. */
  freed(allocation: Allocation): void {
    if (this.#running.size > 0) this.#freed.push(allocation);
  }

  /** Adds an access to bytes of an allocation by a call on a stream. */
  note(access: Access, allocation: Allocation, start: number, end: number, clock: readonly number[], at: number): void {
    const writes = access.writes !== false;
    this.#add({ at, allocation, start, end, writes, access, host: null, clock, run: null, isStrong: false });
  }

  /** Adds an access to bytes of an allocation by the host. */
  noteHost(host: CausalityCall, allocation: Allocation, start: number, end: number, writes: boolean): void {
    const clock = [...this.#order.host];
    const at = this.next();
    this.#add({ at, allocation, start, end, writes, access: null, host, clock, run: null, isStrong: false });
  }

  // law checker/Journal.add: checker/kernels
  #add(entry: Entry): void {
    for (const kernel of overlapping(this.#ofKernels, entry)) {
      const { run } = kernel;
      if (run === null || !conflict(kernel, entry) || areOrdered(run, entry)) continue;
      if (entry.host === null || !run.recording.signalsHost) this.#addRace(kernel, entry);
    }
    // An access by the host comes before everything launched later.
    if (entry.host === null || this.#running.size > 0) this.#append(this.#entries, entry);
    if (this.#count > this.#sweepAt) this.#sweep();
  }

  #append(entries: Entries, entry: Entry): void {
    entries.getOrInsertComputed(entry.allocation, () => new RangeIndex()).add(entry);
    this.#count++;
  }

  #addRace({ access, run, allocation }: Entry, { access: other, host, at }: Entry): void {
    const second = other ?? host;
    if (access !== null && run !== null && second !== null) {
      this.#races.push({ kernel: access, other: second, isFirst: run.at < at, allocation });
    }
  }

  /** Forgets everything: a context is lost, and work enqueued in it may never run. */
  forget(): void {
    this.#entries.clear();
    this.#ofKernels.clear();
    this.#count = 0;
    this.#running.clear();
    this.#races = [];
    this.#freed = [];
  }

  /**
   * Compares the kernels that have completed since the last call with all accesses before and after them.
   *
   * @param find returns the allocation that contains an address now
   * @returns the races found since the last call
   */
  takeRaces(find: (address: number) => Allocation | undefined): KernelRace[] {
    const ended = this.#ended.sort((one, other) => one.at - other.at);
    if (ended.length > 0) this.#ended = [];
    for (const run of ended) {
      if (!this.#running.delete(run)) continue; // forgotten meanwhile
      this.#compare(run, this.#entriesOf(run, find));
      if (this.#count > this.#sweepAt) this.#sweep();
    }
    if (this.#running.size === 0) this.#freed = [];
    const clashes = this.#races;
    this.#races = [];
    return clashes;
  }

  // law checker/Journal.entriesOf: checker/kernels
  /** What a launch has touched, by the allocations that existed when it was launched. */
  #entriesOf(run: KernelLaunch, find: (address: number) => Allocation | undefined): Entry[] {
    const { at, access, clock, recording } = run;
    return recording.touches().flatMap(({ start, end, writes, isStrong }) => {
      const entries: Entry[] = [];
      for (let from = start; from < end;) {
        const allocation = this.#allocationAt(from, at, find(from));
        if (allocation === undefined) break; // memory whose allocation was not seen: a variable of a module
        const to = Math.min(end, allocation.end);
        const piece = { ...access, start: from, end: to, writes };
        entries.push({ at, allocation, start: from, end: to, writes, access: piece, host: null, clock, run, isStrong });
        if (isStrong && writes && allocation.isOfHost) recording.signalsHost = true;
        from = to;
      }
      return entries;
    });
  }

  // law checker/Journal.allocationAt: checker/kernels
  #allocationAt(address: number, at: number, now: Allocation | undefined): Allocation | undefined {
    if (now !== undefined && now.allocatedAt < at) return now;
    return this.#freed.findLast(({ allocatedAt, start, end }) => allocatedAt < at && start <= address && address < end);
  }

  // law checker/Journal.compare: checker/kernels
  #compare(run: KernelLaunch, touched: readonly Entry[]): void {
    // Kernels that synchronise with each other by atomic or volatile accesses may establish their own order.
    // Those with the same signals are alike in this, and of what they did only the last may still be known.
    const synchronized = new Set<string>();
    for (const one of touched) {
      if (!one.isStrong) continue;
      for (const other of overlapping(this.#ofKernels, one)) {
        if (other.run !== null && other.isStrong && conflict(one, other)) {
          synchronized.add(other.run.recording.signals);
        }
      }
    }
    for (const one of touched) {
      for (const other of [...overlapping(this.#entries, one), ...overlapping(this.#ofKernels, one)]) {
        if (!conflict(one, other)) continue;
        const isSynchronized = other.host !== null
          ? run.recording.signalsHost
          : other.run !== null && synchronized.has(other.run.recording.signals);
        if (!isSynchronized && !areOrdered(run, other)) this.#addRace(one, other);
      }
    }
    for (const entry of touched) this.#append(this.#ofKernels, entry);
  }

  // law checker/Journal.sweep: checker/kernels
  /** Forgets what the host has waited for, unless kernels in flight may come before it, and what `#newest` drops. */
  #sweep(): void {
    const isOver = ({ access }: Entry) => access === null || this.#order.isOver(access.stream.index, access.tick);
    const isIdle = this.#running.size === 0;
    this.#retain((entries) => {
      const left = this.#newest(entries);
      return isIdle ? left.filter((entry) => !isOver(entry)) : left;
    });
    if (this.#count > maxEntries) {
      const lists = [...this.#entries.values(), ...this.#ofKernels.values()].flatMap(({ all }) => all);
      const oldest = lists.map(({ at }) => at).sort((one, other) => other - one)[maxEntries >> 1] ?? 0;
      this.#retain((entries) => entries.filter(({ at }) => at > oldest));
    }
    this.#sweepAt = Math.max(fewEntries, 2 * this.#count);
  }

  #retain(keep: (entries: Entry[]) => Entry[]): void {
    this.#count = 0;
    for (const all of [this.#entries, this.#ofKernels]) {
      for (const [allocation, entries] of all) {
        const left = keep(entries.all);
        if (left.length === 0) all.delete(allocation);
        else all.set(allocation, new RangeIndex(left));
        this.#count += left.length;
      }
    }
  }

  // law checker/Journal.newest: checker/kernels
  /**
   * Leaves out each access that comes before a later one to the same bytes, as long as no kernel launched before the
   * later one is in flight: whatever is launched from now on and is unordered with the earlier one is unordered with
   * the later one, too. So a program that never waits is not compared with all that it has ever done.
   */
  #newest(entries: Entry[]): Entry[] {
    const launched = this.#running.values().next().value?.at ?? Infinity;
    const newer = new Map<string, Entry[]>();
    return entries.sort((one, other) => other.at - one.at).filter((entry) => {
      const { at, access, start, end, writes, isStrong, run } = entry;
      if (access === null) return true; // the host's: forgotten as soon as no kernel is in flight
      // Of the same key are only kernels that are alike in what may order them by themselves.
      const key = `${start} ${end} ${isStrong} ${run?.recording.signals ?? ""}`;
      const later = newer.getOrInsertComputed(key, () => []);
      if (later.some((one) => (one.writes || !writes) && isBefore(access, one.clock))) return false;
      if (at < launched) later.push(entry);
      return true;
    });
  }
}

/** Accesses to bytes of another one, the oldest first. */
function overlapping(entries: Entries, { allocation, start, end }: Entry): Entry[] {
  const found = entries.get(allocation)?.overlapping(start, end) ?? [];
  return found.length < 2 ? found : found.sort((one, other) => one.at - other.at);
}

/** Whether two accesses that have bytes in common race if nothing orders them. */
function conflict(one: Entry, other: Entry): boolean {
  return one.writes || other.writes;
}

function areOrdered({ access: kernel, clock, at }: KernelLaunch, other: Entry): boolean {
  if (isBefore(kernel, other.clock)) return true; // after it, or of the same graph
  return other.access === null ? other.at < at : isBefore(other.access, clock);
}
