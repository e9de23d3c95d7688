/**
 * The streams of a random program, and the order of their work.
 *
 * @module
 */

/** What a stream waits for implicitly: `free` for nothing. */
export type LaneKind = "legacy" | "blocking" | "free" | "thread";

/** Streams of a device: the legacy default stream, a blocking one, two others, the thread's default stream. */
export const laneKinds: readonly LaneKind[] = ["legacy", "blocking", "free", "free", "thread"];

/** How one stream is made to wait for another. */
export type How = "new event" | "recorded again" | "context";

/** The device of a lane, where each device has lanes of these kinds. */
export function deviceOf(lane: number, kinds: readonly LaneKind[] = laneKinds): number {
  return Math.floor(lane / kinds.length);
}

/** The happens-before order of work by the rules of CUDA: a vector clock per stream, and one for the host. */
export class Order {
  readonly #lanes: number[][];
  /** What precedes the next work of streams that implicitly follow a stream. */
  readonly #handed: number[][];
  readonly #kinds: readonly LaneKind[];
  #host: number[];

  constructor(lanes: number, kinds: readonly LaneKind[] = laneKinds) {
    this.#lanes = Array.from({ length: lanes }, () => new Array<number>(lanes).fill(0));
    this.#handed = [...this.#lanes];
    this.#kinds = kinds;
    this.#host = new Array<number>(lanes).fill(0);
  }

  /** The clock of a stream's next work, as determined by the work enqueued so far. */
  upcoming(lane: number): readonly number[] {
    const clock = [...this.#lane(lane)];
    join(clock, this.#host);
    const kind = this.#kindOf(lane);
    if (kind === "free") return clock;
    const blocking = kind === "legacy" ? ["blocking", "thread"] : ["legacy"];
    this.#handed.forEach((other, at) => {
      if (this.#deviceOf(at) === this.#deviceOf(lane) && blocking.includes(this.#kindOf(at))) join(clock, other);
    });
    return clock;
  }

  /**
   * Appends an allocation; returns its number. On the legacy default stream it precedes the work of streams that
   * implicitly follow that one, but does not pass on what it follows itself (observed on an H200 with driver 580).
   */
  allocation(lane: number): number {
    const handed = [...this.#handed[lane] ?? []];
    const number = this.work(lane);
    handed[lane] = number;
    if (this.#kindOf(lane) === "legacy") this.#handed[lane] = handed;
    return number;
  }

  /** Appends work to a stream; returns its number there. */
  work(lane: number): number {
    const clock = [...this.upcoming(lane)];
    const number = (clock[lane] ?? 0) + 1;
    clock[lane] = number;
    this.#lanes[lane] = this.#handed[lane] = clock;
    return number;
  }

  /** Makes a stream's next work wait for all work that another stream, or its whole context, has enqueued. */
  wait(after: number, before: number, how: How): void {
    const clock: number[] = [];
    if (how === "context") {
      this.#lanes.forEach((other, at) => this.#deviceOf(at) === this.#deviceOf(before) && join(clock, other));
    } else {
      this.work(before); // the record is work of the stream, with the implicit order of a default stream
      join(clock, this.#lane(before));
    }
    this.work(after); // and so is the wait
    join(this.#lane(after), clock);
  }

  /**
   * The host waits for the work enqueued on a stream. For the legacy default stream that includes the streams that its
   * next work would wait for, but not the other way round (both observed on an H200 with driver 580).
   */
  synchronize(lane: number): void {
    join(this.#host, this.#kindOf(lane) === "legacy" ? this.upcoming(lane) : this.#lane(lane));
  }

  /** Whether the host knows that a piece of work has completed. */
  isHostAfter(lane: number, number: number): boolean {
    return (this.#host[lane] ?? 0) >= number;
  }

  /**
   * The work enqueued on a stream, and all that precedes it: at least this is what an event recorded there stands for.
   */
  held(lane: number): readonly number[] {
    return [...this.#lane(lane)];
  }

  /** Orders a stream's next work after a point returned by {@linkcode Order.held}. */
  after(lane: number, clock: readonly number[]): void {
    join(this.#lane(lane), clock);
    this.#handed[lane] = this.#lane(lane); // waiting is work
  }

  /** Orders the host, and all that it enqueues from now on, after a point. */
  hostAfter(clock: readonly number[]): void {
    join(this.#host, clock);
  }

  #deviceOf(lane: number): number {
    return deviceOf(lane, this.#kinds);
  }

  #kindOf(lane: number): LaneKind {
    return this.#kinds[lane % this.#kinds.length] ?? "free";
  }

  #lane(lane: number): number[] {
    return this.#lanes[lane] ?? [];
  }
}

/** Advances a clock past another one. */
export function join(clock: number[], other: readonly number[]): void {
  other.forEach((value, i) => clock[i] = Math.max(clock[i] ?? 0, value));
}
