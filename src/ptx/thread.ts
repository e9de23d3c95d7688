/**
 * Threads and blocks of a launch, and how the threads of a block synchronise.
 *
 * @module
 */
import type { ExecutionState } from "./execution_state.ts";

/** The return address of a call. */
export interface Return {
  readonly pc: number;
  readonly base: number;
  readonly localBase: number;
  /** Copies the results into the caller's variables; takes the offsets of both local memories. */
  readonly finish: (calleeLocal: number, callerLocal: number) => void;
}

/** A thread of a warp at an instruction that other lanes must execute with it: `shfl.sync` and its relatives. */
export interface WarpCollective {
  /** Instruction with its modifiers: all threads must execute the same one. */
  readonly what: string;
  readonly line: number;
  readonly mask: number;
  /** What this thread contributes. */
  readonly value: number | bigint;
  /** Delivers the result to one lane, once all have arrived: `lanes[i]` is the contribution of lane i, or null. */
  readonly resolve: (lanes: readonly (WarpCollective | null)[], lane: number) => void;
}

/** The barrier that a thread waits at. */
export interface BarrierWait {
  readonly barrier: number;
  readonly line: number;
  /** The instruction, to detect a diverged warp; null for barriers at which a warp may diverge. */
  readonly pc: number | null;
  /** Number of threads that the instruction specifies; null for the whole block. */
  readonly expected: number | null;
  /** What the thread contributes to a reduction. */
  readonly predicate: boolean;
  /** Receives the contributions of all threads, if this is a reduction. */
  readonly receive: ((predicates: readonly boolean[]) => void) | null;
}

/** A thread. */
export class Thread {
  readonly block: Block;
  /** Linear index in its block: x runs fastest. */
  readonly index: number;
  /** Offset of its frames. */
  readonly regStart: number;
  /** Offset of its local memory. */
  readonly localStart: number;
  /** Next instruction. */
  pc = 0;
  /** Frame of the running call. */
  base: number;
  /** Local memory of the running call, counted from `localStart`. */
  localBase = 0;
  state: "ready" | "waiting" | "exited" = "ready";
  readonly calls: Return[] = [];
  waiting: BarrierWait | null = null;
  collective: WarpCollective | null = null;

  /** @param place its part of the resident threads' memory: offsets of frames and local memory */
  constructor(block: Block, index: number, place: { readonly regStart: number; readonly localStart: number }) {
    this.block = block;
    this.index = index;
    this.regStart = place.regStart;
    this.localStart = place.localStart;
    this.base = place.regStart;
  }

  /** Index in its warp. */
  get lane(): number {
    return this.index & 31;
  }

  /** Its position in the block. */
  get coordinates(): readonly [x: number, y: number, z: number] {
    const [x, y] = this.block.shape;
    const { index } = this;
    return [index % x, Math.floor(index / x) % y, Math.floor(index / (x * y))];
  }

  /** Coordinates, for error messages. */
  where(): string {
    return `block (${this.block.coordinates.join(", ")}), thread (${this.coordinates.join(", ")})`;
  }
}

/** The threads that have arrived at a barrier. */
interface Arrivals {
  /** Those that wait there. */
  readonly waiting: Thread[];
  arrived: number;
  /** How many it waits for; null for all of the block. */
  readonly expected: number | null;
}

/** A resident block. */
export class Block {
  readonly coordinates: readonly [number, number, number];
  readonly shape: readonly [number, number, number];
  readonly shared: DataView;
  readonly threads: Thread[] = [];
  /** Threads that have not exited. */
  live = 0;
  /** Threads that have arrived at each barrier. */
  readonly #barriers = new Map<number, Arrivals>();
  readonly #state: ExecutionState;

  constructor(
    state: ExecutionState,
    coordinates: readonly [number, number, number],
    shape: readonly [number, number, number],
    shared: DataView,
  ) {
    this.#state = state;
    this.coordinates = coordinates;
    this.shape = shape;
    this.shared = shared;
  }

  /** Blocks a thread at a barrier, unless it is the last to arrive. */
  wait(thread: Thread, waiting: BarrierWait): void {
    const arrivals = this.#arrive(waiting.barrier, waiting.expected, waiting.line);
    for (const other of arrivals.waiting) {
      const at = other.waiting;
      if (
        at !== null && at.pc !== null && waiting.pc !== null && at.pc !== waiting.pc &&
        other.index >> 5 === thread.index >> 5
      ) {
        const what =
          `the threads of one warp are at barrier ${waiting.barrier} in lines ${at.line} and ${waiting.line}`;
        this.#state.fault("undefined behaviour", waiting.line, what);
      }
    }
    thread.state = "waiting";
    thread.waiting = waiting;
    arrivals.waiting.push(thread);
    this.#release(waiting.barrier);
  }

  /** Counts a thread that arrives at a barrier and does not wait. */
  arrive(barrier: number, expected: number, line: number): void {
    this.#arrive(barrier, expected, line);
    this.#release(barrier);
  }

  #arrive(barrier: number, expected: number | null, line: number): Arrivals {
    const arrivals = this.#barriers.get(barrier) ?? { waiting: [], arrived: 0, expected };
    this.#barriers.set(barrier, arrivals);
    if (arrivals.expected !== expected) {
      const [one, two] = [arrivals.expected ?? "all", expected ?? "all"];
      this.#state.fault("undefined behaviour", line, `barrier ${barrier} waits for both ${one} and ${two} threads`);
    }
    arrivals.arrived++;
    return arrivals;
  }

  #release(barrier: number): void {
    const arrivals = this.#barriers.get(barrier);
    if (arrivals === undefined || arrivals.arrived < (arrivals.expected ?? this.live)) return;
    this.#barriers.delete(barrier);
    const predicates = arrivals.waiting.map(({ waiting }) => waiting?.predicate ?? false);
    for (const thread of arrivals.waiting) {
      thread.waiting?.receive?.(predicates);
      thread.waiting = null;
      thread.state = "ready";
      this.#state.ready.push(thread);
    }
  }

  /** Blocks a thread at an instruction that the threads of a warp execute together. */
  joinCollective(thread: Thread, collective: WarpCollective): void {
    if (((collective.mask >>> thread.lane) & 1) === 0) {
      const mask = `0x${(collective.mask >>> 0).toString(16)}`;
      this.#state.fault(
        "undefined behaviour",
        collective.line,
        `${collective.what} of lane ${thread.lane}, which ${mask} leaves out`,
      );
    }
    thread.state = "waiting";
    thread.collective = collective;
    this.#completeCollectives(thread.index >> 5);
  }

  /** Completes those collectives of a warp that all participating threads have reached. */
  #completeCollectives(warp: number): void {
    const lanes = this.threads.slice(warp * 32, warp * 32 + 32);
    for (const { collective } of lanes) {
      if (collective === null) continue;
      const { mask, what } = collective;
      const members = lanes.filter((thread) => ((mask >>> thread.lane) & 1) === 1 && thread.state !== "exited");
      if (
        !members.every((one) => one.collective !== null && one.collective.mask === mask && one.collective.what === what)
      ) {
        continue;
      }
      const met = lanes.map((thread) => members.includes(thread) ? thread.collective : null);
      for (const thread of members) thread.collective?.resolve(met, thread.lane);
      for (const thread of members) {
        thread.collective = null;
        thread.state = "ready";
        this.#state.ready.push(thread);
      }
    }
  }

  /** Ends a thread: barriers and collectives no longer wait for it. */
  exit(thread: Thread): void {
    thread.state = "exited";
    this.live--;
    for (const [barrier, { expected }] of this.#barriers) if (expected === null) this.#release(barrier);
    this.#completeCollectives(thread.index >> 5);
  }

  /** What the deadlocked threads wait for, with the line of one of them. */
  stuck(): { readonly line: number; readonly what: string } {
    const places = new Map<string, { line: number; count: number }>();
    for (const { waiting, collective } of this.threads) {
      const what = waiting === null ? collective?.what : `barrier ${waiting.barrier}`;
      const line = waiting?.line ?? collective?.line;
      if (what === undefined || line === undefined) continue;
      const key = `${what} in line ${line}`;
      places.set(key, { line, count: (places.get(key)?.count ?? 0) + 1 });
    }
    const what = [...places].map(([place, { count }]) => `${count} at ${place}`).join(", ");
    const ended = this.threads.length - this.live;
    const text = `of ${this.threads.length} threads wait ${what}; ${ended} have ended`;
    return { line: [...places.values()][0]?.line ?? 0, what: text };
  }
}
