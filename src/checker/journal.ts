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
  #pieces: Touched[] = [];
  #joinAt = manyPieces;

  /** @param kernels the number of kernels */
  constructor(kernels: number) {
    this.#left = kernels;
  }

  /** Whether all of them have completed. */
  get isOver(): boolean {
    return this.#left <= 0;
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
    this.#left--;
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

/** Accesses, kept as long as a kernel may turn out to be unordered with them. */
export class Journal {
  readonly #order: VectorClocks;
  /** Accesses by calls and by the host, other than by kernels. */
  #entries: Entry[] = [];
  /** Accesses by kernels that have run. */
  #ofKernels: Entry[] = [];
  #running: KernelLaunch[] = [];
  #races: KernelRace[] = [];
  /** Memory that was freed before kernels had run. */
  #freed: Allocation[] = [];
  #now = 0;
  #sweepAt = 1024;

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
    return this.#running.length === 0 && this.#races.length === 0;
  }

  /** Whether it knows of kernels: if not, accesses by the host need not be noted. */
  get knowsKernels(): boolean {
    return this.#running.length > 0 || this.#ofKernels.length > 0;
  }

  /** Adds launched kernels. `takeRaces` compares them once they have completed. */
  launched(recording: KernelRecording, access: Access, clock: readonly number[], at: number): void {
    this.#running.push({ recording, access, clock, at });
  }

  /** Notes that memory is freed, so that its addresses may be reused. */
  freed(allocation: Allocation): void {
    if (this.#running.length > 0) this.#freed.push(allocation);
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
    for (const kernel of this.#ofKernels) {
      const { run } = kernel;
      if (run === null || !conflict(kernel, entry) || areOrdered(run, entry)) continue;
      if (entry.host === null || !run.recording.signalsHost) this.#addRace(kernel, entry);
    }
    // An access by the host comes before everything launched later.
    if (entry.host === null || this.#running.length > 0) this.#entries.push(entry);
    if (this.#entries.length > this.#sweepAt) this.#sweep();
  }

  #addRace({ access, run, allocation }: Entry, { access: other, host, at }: Entry): void {
    const second = other ?? host;
    if (access !== null && run !== null && second !== null) {
      this.#races.push({ kernel: access, other: second, isFirst: run.at < at, allocation });
    }
  }

  /** Forgets everything: a context is lost, and work enqueued in it may never run. */
  forget(): void {
    this.#entries = [];
    this.#ofKernels = [];
    this.#running = [];
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
    const ended = this.#running.filter(({ recording }) => recording.isOver);
    if (ended.length > 0) {
      this.#running = this.#running.filter(({ recording }) => !recording.isOver);
      for (const run of ended) this.#compare(run, this.#entriesOf(run, find));
      if (this.#running.length === 0) this.#freed = [];
      if (this.#entries.length + this.#ofKernels.length > this.#sweepAt) this.#sweep();
    }
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
    const byAllocation = Map.groupBy(touched, ({ allocation }) => allocation);
    const meeting = (other: Entry): Entry[] =>
      byAllocation.get(other.allocation)?.filter((one) => conflict(one, other)) ?? [];
    const others = [...this.#entries, ...this.#ofKernels];
    // Kernels that synchronise with each other by atomic or volatile accesses may establish their own order.
    const synchronized = new Set<KernelLaunch | null>();
    for (const other of this.#ofKernels) {
      const { isStrong, allocation } = other;
      if (isStrong && byAllocation.get(allocation)?.some((one) => one.isStrong && overlap(one, other))) {
        synchronized.add(other.run);
      }
    }
    for (const other of others) {
      const isSynchronized = other.host !== null
        ? run.recording.signalsHost
        : other.run !== null && synchronized.has(other.run);
      if (isSynchronized || areOrdered(run, other)) continue;
      const [one] = meeting(other);
      if (one !== undefined) this.#addRace(one, other);
    }
    for (const entry of touched) this.#ofKernels.push(entry);
  }

  // law checker/Journal.sweep: checker/kernels
  /** Forgets what the host has waited for, unless kernels in flight may come before it. */
  #sweep(): void {
    const isOver = ({ access }: Entry) => access === null || this.#order.isOver(access.stream.index, access.tick);
    if (this.#running.length === 0) {
      this.#entries = this.#entries.filter((entry) => !isOver(entry));
      this.#ofKernels = this.#ofKernels.filter((entry) => !isOver(entry));
    }
    for (const list of [this.#entries, this.#ofKernels]) {
      if (list.length > maxEntries) list.splice(0, maxEntries >> 1);
    }
    this.#sweepAt = Math.max(1024, 2 * (this.#entries.length + this.#ofKernels.length));
  }
}

function overlap(one: Entry, other: Entry): boolean {
  return one.start < other.end && other.start < one.end && (one.writes || other.writes);
}

/** Whether two accesses race if nothing orders them, and they are not by kernels that synchronise with each other. */
function conflict(one: Entry, other: Entry): boolean {
  return one.allocation === other.allocation && overlap(one, other);
}

function areOrdered({ access: kernel, clock, at }: KernelLaunch, other: Entry): boolean {
  if (isBefore(kernel, other.clock)) return true; // after it, or of the same graph
  return other.access === null ? other.at < at : isBefore(other.access, clock);
}
