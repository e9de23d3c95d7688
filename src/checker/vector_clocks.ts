/**
 * Which work happens before which, by CUDA's rules and not by how it happened to run: a vector clock for every stream,
 * and one for the host.
 *
 * Work of a stream is numbered. Work with a clock comes after work `n` of the stream with index `s` if `clock[s] >= n`.
 * The host has a clock but no index: its own work has completed when the call returns, and everything enqueued later
 * follows.
 *
 * @module
 */

import type { CapturedPoint } from "./capture.ts";
import { CallSites } from "./call_site.ts";

/** How much of each stream's work happens before, by the stream's index. */
export type Clock = number[];

/** Merges another clock into one: the larger of each pair of entries. */
export function join(into: Clock, other: readonly number[]): void {
  for (let i = 0; i < other.length; i++) {
    const value = other[i] ?? 0;
    if (value > (into[i] ?? 0)) into[i] = value;
    else if (i >= into.length) into[i] = 0; // no holes: they would make the array slow
  }
}

/** The order of a context. */
export class ContextClock {
  /** `CUcontext`. */
  readonly handle: bigint;
  /** The device's ordinal, if it is known. */
  readonly device: number | null;
  /** Its streams, including destroyed ones whose work the host has not waited for. */
  readonly streams: Set<StreamClock> = new Set();
  /** The legacy default stream, once used. */
  legacy: StreamClock | null = null;
  /** The thread's default stream, once used. */
  perThread: StreamClock | null = null;
  /** What all work enqueued from now on waits for. */
  readonly barrier: Clock = [];
  /** Increases when the barrier changes. */
  barrierVersion = 0;

  /** A context without streams. */
  constructor(handle: bigint, device: number | null) {
    this.handle = handle;
    this.device = device;
  }
}

/** The order of a stream. */
export class StreamClock {
  /** Its index in clocks. A destroyed stream's index is reused once the host has waited for all its work. */
  readonly index: number;
  /** `CUstream`. */
  readonly handle: bigint;
  /** The context that it belongs to. */
  readonly context: ContextClock;
  /** Whether it and the legacy default stream wait for each other. */
  readonly isBlocking: boolean;
  /** Its name in reports; its user may change it. */
  name: string;
  /** What comes before its next work, as far as decided; its own entry is the number of its last work. */
  readonly clock: Clock;
  /**
   * The clock merged by streams that follow this one by the rules of default streams, if it is less than its own: they
   * do not follow what an allocation on the legacy default stream waits for (`tests/gpu/implied_order_test.ts`).
   */
  implicitClock: Clock | null = null;
  /** Increases when the clock changes. */
  version = 0;
  /** Its last work in the timeline. */
  last = 0;
  /** The call sites of work enqueued on it. */
  readonly sites: CallSites = new CallSites();
  /** The capture that it takes part in, if any. */
  capture: CapturedPoint | null = null;
  /** Versions of clocks that have been merged. */
  seenHost = -1;
  /** See `seenHost`. */
  seenBarrier = 0;
  /** See `seenHost`. */
  seenLegacy = 0;

  /** Use {@linkcode VectorClocks.open}. */
  constructor(index: number, handle: bigint, context: ContextClock, isBlocking: boolean, name: string, tick: number) {
    this.index = index;
    this.handle = handle;
    this.context = context;
    this.isBlocking = isBlocking;
    this.name = name;
    this.clock = new Array<number>(index + 1).fill(0);
    this.clock[index] = tick;
  }

  /** The number of its last work. */
  get tick(): number {
    return this.clock[this.index] ?? 0;
  }
}

/** The clocks of a driver's streams. */
export class VectorClocks {
  /** What the host has waited for: everything enqueued from now on comes after it. */
  readonly host: Clock = [];
  /** The last wait of the host in the timeline. */
  lastWait = 0;
  #hostVersion = 0;
  readonly #streams: StreamClock[] = [];
  /** Destroyed streams whose indices are still in use. */
  #closed: StreamClock[] = [];

  /** All streams, including destroyed ones that the host has not waited for. */
  get streams(): readonly StreamClock[] {
    return this.#streams;
  }

  /** Whether the host has waited for work, so that nothing can be unordered with it any longer. */
  isOver(stream: number, tick: number): boolean {
    return (this.host[stream] ?? 0) >= tick;
  }

  /** A new stream. */
  open(handle: bigint, context: ContextClock, isBlocking: boolean, name: string): StreamClock {
    const old = this.#reusable();
    const stream = new StreamClock(
      old?.index ?? this.#streams.length,
      handle,
      context,
      isBlocking,
      name,
      old?.tick ?? 0,
    );
    this.#streams[stream.index] = stream;
    context.streams.add(stream);
    return stream;
  }

  /** Notes that a stream is destroyed: enqueued work still runs. */
  close(stream: StreamClock): void {
    this.#closed.push(stream);
  }

  // law checker/VectorClocks.reusable: checker/checker
  /** A destroyed stream whose index can be reused: everything it did comes before everything enqueued from now on. */
  #reusable(): StreamClock | null {
    // Not only its own work: the legacy default stream may not yet have merged work that a stream has only waited for.
    const at = this.#closed.findIndex(({ clock }) => clock.every((tick, stream) => this.isOver(stream, tick)));
    const [stream] = at < 0 ? [] : this.#closed.splice(at, 1);
    stream?.context.streams.delete(stream);
    return stream ?? null;
  }

  // law checker/VectorClocks.advance: checker/checker
  /**
   * Merges what a stream's next work waits for by CUDA's rules: what the host has waited for, what its context waits
   * for, and the legacy default stream.
   *
   * @param from receives the timeline numbers of what it waits for
   */
  advance(stream: StreamClock, from: number[] | null): void {
    const { context, clock } = stream;
    if (stream.seenHost !== this.#hostVersion) {
      join(clock, this.host);
      if (stream.seenHost >= 0 && this.lastWait > 0) from?.push(this.lastWait);
      stream.seenHost = this.#hostVersion;
    }
    if (stream.seenBarrier !== context.barrierVersion) {
      join(clock, context.barrier);
      stream.seenBarrier = context.barrierVersion;
    }
    const { legacy } = context;
    if (stream === legacy) {
      for (const other of context.streams) {
        if (other === stream || !other.isBlocking) continue;
        if ((clock[other.index] ?? 0) < other.tick) from?.push(other.last);
        join(clock, other.clock);
      }
    } else if (stream.isBlocking && legacy !== null && stream.seenLegacy !== legacy.version) {
      if ((clock[legacy.index] ?? 0) < legacy.tick) from?.push(legacy.last);
      join(clock, legacy.implicitClock ?? legacy.clock);
      stream.seenLegacy = legacy.version;
    }
    stream.implicitClock = null;
    stream.version++;
  }

  // law checker/VectorClocks.step: checker/checker
  /** Numbers the next work, after `advance`. */
  step(stream: StreamClock): number {
    const tick = stream.tick + 1;
    stream.clock[stream.index] = tick;
    return tick;
  }

  // law checker/VectorClocks.implicitClockOf: checker/schedule
  /** The implicit clock of the legacy default stream, for an allocation to add itself to; null for other streams. */
  implicitClockOf(stream: StreamClock): Clock | null {
    return stream === stream.context.legacy ? [...stream.implicitClock ?? stream.clock] : null;
  }

  /** Makes all later work of a stream wait for a clock, after `advance`. */
  wait(stream: StreamClock, clock: readonly number[]): void {
    join(stream.clock, clock);
    stream.version++;
  }

  // law checker/VectorClocks.waitInContext: checker/checker
  /** Makes all later work of a context wait for a clock. */
  waitInContext(context: ContextClock, clock: readonly number[]): void {
    join(context.barrier, clock);
    context.barrierVersion++;
  }

  // law checker/VectorClocks.hostWaits: checker/checker
  /** Notes that the host has waited for a clock. */
  hostWaits(clock: readonly number[]): void {
    join(this.host, clock);
    this.#hostVersion++;
  }

  // law checker/VectorClocks.awaited: checker/checker
  /** The streams that a wait for a stream covers: for the legacy default stream, also the streams that it waits for. */
  awaited(stream: StreamClock): readonly StreamClock[] {
    const { context } = stream;
    return stream === context.legacy ? [...context.streams].filter(({ isBlocking }) => isBlocking) : [stream];
  }

  /** Everything enqueued anywhere: it stands in for an event that was recorded elsewhere. */
  everything(): Clock {
    const all: Clock = [];
    for (const stream of this.#streams) join(all, stream.clock);
    return all;
  }
}
