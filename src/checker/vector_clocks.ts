/**
 * Which work has happened before which, as CUDA's rules say and not as it happened to run: a vector clock for every
 * stream, and one for the host.
 *
 * Work of a stream is numbered. Something with a clock comes after number `n` of lane `l` if `clock[l] >= n`. The host
 * has a clock and no lane: what it does itself is over when the call returns, and everything enqueued later comes after.
 *
 * @module
 */

import type { CapturedPoint } from "./capture.ts";
import { Sites } from "./call_site.ts";

/** How much of each lane's work has happened before, by the lane's index. */
export type Clock = number[];

/** Takes over what another clock knows. */
export function join(into: Clock, other: readonly number[]): void {
  for (let i = 0; i < other.length; i++) {
    const value = other[i] ?? 0;
    if (value > (into[i] ?? 0)) into[i] = value;
    else if (i >= into.length) into[i] = 0; // no holes: they would make the array slow
  }
}

/** A context, as far as order goes. */
export class ContextOrder {
  /** `CUcontext`. */
  readonly handle: bigint;
  /** The device's ordinal, if it is known. */
  readonly device: number | null;
  /** Its streams, also destroyed ones whose work the host has not waited for. */
  readonly lanes: Set<Lane> = new Set();
  /** The legacy default stream, once it was used. */
  legacy: Lane | null = null;
  /** The thread's default stream, once it was used. */
  perThread: Lane | null = null;
  /** What all work that is enqueued from now on waits for. */
  readonly gate: Clock = [];
  /** Rises when the gate changes. */
  gateVersion = 0;

  /** A context without streams. */
  constructor(handle: bigint, device: number | null) {
    this.handle = handle;
    this.device = device;
  }
}

/** A stream, as far as order goes. */
export class Lane {
  /** Its place in clocks. A destroyed stream's place is given to another one once the host has seen all its work. */
  readonly index: number;
  /** `CUstream`. */
  readonly handle: bigint;
  /** The context that it belongs to. */
  readonly context: ContextOrder;
  /** Whether it waits for the legacy default stream and that one for it. */
  readonly isBlocking: boolean;
  /** Its name in reports. */
  readonly name: string;
  /** What comes before its next work, as far as that is decided; its own entry is the number of its last work. */
  readonly clock: Clock;
  /**
   * What streams take over that come after this one by the rules of default streams, where that is less than the clock: an
   * allocation on the legacy default stream hands on nothing of what it comes after (`tests/gpu/implied_order_test.ts`).
   */
  handed: Clock | null = null;
  /** Rises when the clock changes. */
  version = 0;
  /** Its last work in the timeline. */
  last = 0;
  /** Where work was enqueued on it. */
  readonly sites: Sites = new Sites();
  /** The capture that it takes part in, if it does. */
  capture: CapturedPoint | null = null;
  /** Versions of clocks that have been taken over. */
  seenHost = -1;
  /** See `seenHost`. */
  seenGate = 0;
  /** See `seenHost`. */
  seenLegacy = 0;

  /** Use {@linkcode Order.open}. */
  constructor(index: number, handle: bigint, context: ContextOrder, isBlocking: boolean, name: string, tick: number) {
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
export class Order {
  /** What the host has waited for: everything that is enqueued from now on comes after it. */
  readonly host: Clock = [];
  /** The last wait of the host in the timeline. */
  lastWait = 0;
  #hostVersion = 0;
  readonly #lanes: Lane[] = [];
  /** Destroyed streams whose places are still in use. */
  #closed: Lane[] = [];

  /** All streams, destroyed ones included that the host has not waited for. */
  get lanes(): readonly Lane[] {
    return this.#lanes;
  }

  /** Whether the host has waited for a piece of work, so that nothing can be unordered with it any more. */
  isOver(lane: number, tick: number): boolean {
    return (this.host[lane] ?? 0) >= tick;
  }

  /** A new stream. */
  open(handle: bigint, context: ContextOrder, isBlocking: boolean, name: string): Lane {
    const old = this.#reusable();
    const lane = new Lane(old?.index ?? this.#lanes.length, handle, context, isBlocking, name, old?.tick ?? 0);
    this.#lanes[lane.index] = lane;
    context.lanes.add(lane);
    return lane;
  }

  /** A stream is destroyed: what is enqueued still runs. */
  close(lane: Lane): void {
    this.#closed.push(lane);
  }

  /** A place in clocks that nothing can be unordered with any more: all that its stream did comes before all to come. */
  #reusable(): Lane | null {
    // Not only its own work: a stream that has only waited knows what the default stream is yet to learn from it.
    const at = this.#closed.findIndex(({ clock }) => clock.every((tick, lane) => this.isOver(lane, tick)));
    const [lane] = at < 0 ? [] : this.#closed.splice(at, 1);
    lane?.context.lanes.delete(lane);
    return lane ?? null;
  }

  /**
   * Takes over what a stream's next work has to wait for by the rules: what the host has waited for, what its context
   * waits for, and what the legacy default stream means.
   *
   * @param from takes the timeline's numbers of what it waits for
   */
  advance(lane: Lane, from: number[] | null): void {
    const { context, clock } = lane;
    if (lane.seenHost !== this.#hostVersion) {
      join(clock, this.host);
      if (lane.seenHost >= 0 && this.lastWait > 0) from?.push(this.lastWait);
      lane.seenHost = this.#hostVersion;
    }
    if (lane.seenGate !== context.gateVersion) {
      join(clock, context.gate);
      lane.seenGate = context.gateVersion;
    }
    const { legacy } = context;
    if (lane === legacy) {
      for (const other of context.lanes) {
        if (other === lane || !other.isBlocking) continue;
        if ((clock[other.index] ?? 0) < other.tick) from?.push(other.last);
        join(clock, other.clock);
      }
    } else if (lane.isBlocking && legacy !== null && lane.seenLegacy !== legacy.version) {
      if ((clock[legacy.index] ?? 0) < legacy.tick) from?.push(legacy.last);
      join(clock, legacy.handed ?? legacy.clock);
      lane.seenLegacy = legacy.version;
    }
    lane.handed = null;
    lane.version++;
  }

  /** Numbers a piece of work, after `advance`. */
  step(lane: Lane): number {
    const tick = lane.tick + 1;
    lane.clock[lane.index] = tick;
    return tick;
  }

  /** What a stream has handed on so far, for an allocation on it to add itself to; null if the rules ask nothing of that. */
  handedBy(lane: Lane): Clock | null {
    return lane === lane.context.legacy ? [...lane.handed ?? lane.clock] : null;
  }

  /** Makes all later work of a stream wait for something, after `advance`. */
  wait(lane: Lane, clock: readonly number[]): void {
    join(lane.clock, clock);
    lane.version++;
  }

  /** Makes all later work of a context wait for something. */
  waitInContext(context: ContextOrder, clock: readonly number[]): void {
    join(context.gate, clock);
    context.gateVersion++;
  }

  /** The host has waited for something. */
  hostWaits(clock: readonly number[]): void {
    join(this.host, clock);
    this.#hostVersion++;
  }

  /** What waiting for a stream means: for the legacy default stream also the streams that it waits for. */
  awaited(lane: Lane): readonly Lane[] {
    const { context } = lane;
    return lane === context.legacy ? [...context.lanes].filter(({ isBlocking }) => isBlocking) : [lane];
  }

  /** Everything that is enqueued anywhere. What stands for an event that somebody else has recorded. */
  everything(): Clock {
    const all: Clock = [];
    for (const lane of this.#lanes) join(all, lane.clock);
    return all;
  }
}
