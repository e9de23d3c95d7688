/**
 * The streams of a random program, and which of their work comes before which.
 *
 * @module
 */

/** What a stream waits for without being told: `free` for nothing. */
export type LaneKind = "legacy" | "blocking" | "free" | "thread";

/** Streams of a device: the legacy default stream, a blocking one, two others, the thread's default stream. */
export const laneKinds: readonly LaneKind[] = ["legacy", "blocking", "free", "free", "thread"];

/** How one stream is made to wait for another. */
export type How = "new event" | "recorded again" | "context";

/** The device of a lane, where each device has lanes of these kinds. */
export function deviceOf(lane: number, kinds: readonly LaneKind[] = laneKinds): number {
  return Math.floor(lane / kinds.length);
}

/** Which work has happened before which, as the rules of CUDA say: a vector clock per stream, and one for the host. */
export class Order {
  readonly #lanes: number[][];
  /** What comes before the next work of those that come after a stream without being told. */
  readonly #handed: number[][];
  readonly #kinds: readonly LaneKind[];
  #host: number[];

  constructor(lanes: number, kinds: readonly LaneKind[] = laneKinds) {
    this.#lanes = Array.from({ length: lanes }, () => new Array<number>(lanes).fill(0));
    this.#handed = [...this.#lanes];
    this.#kinds = kinds;
    this.#host = new Array<number>(lanes).fill(0);
  }

  /** The clock of a stream's next work, as far as what is enqueued already decides it. */
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
   * Appends an allocation; returns its number. On the legacy default stream it is there for those that come after that
   * one without being told, but what it comes after itself it does not hand on (seen on an H200 with driver 580).
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

  /** Makes what a stream does next wait for all that another one, or its whole context, has enqueued. */
  wait(after: number, before: number, how: How): void {
    const clock: number[] = [];
    if (how === "context") {
      this.#lanes.forEach((other, at) => this.#deviceOf(at) === this.#deviceOf(before) && join(clock, other));
    } else {
      this.work(before); // the record is work of the stream, with all that this means in a default stream
      join(clock, this.#lane(before));
    }
    this.work(after); // and so is the wait
    join(this.#lane(after), clock);
  }

  /**
   * The host waits for a stream: for what was enqueued there. For the legacy default stream that includes the streams
   * that its next work would wait for, but not the other way round (both seen on an H200 with driver 580).
   */
  synchronize(lane: number): void {
    join(this.#host, this.#kindOf(lane) === "legacy" ? this.upcoming(lane) : this.#lane(lane));
  }

  /** Whether the host knows that a piece of work is done. */
  isHostAfter(lane: number, number: number): boolean {
    return (this.#host[lane] ?? 0) >= number;
  }

  /** What a stream holds now, and all that comes before it: what an event recorded there stands for, at least. */
  held(lane: number): readonly number[] {
    return [...this.#lane(lane)];
  }

  /** Makes what a stream does next come after a point that {@linkcode Order.held} has told. */
  after(lane: number, clock: readonly number[]): void {
    join(this.#lane(lane), clock);
    this.#handed[lane] = this.#lane(lane); // waiting is work
  }

  /** Makes the host, and all that it enqueues from now on, come after a point. */
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

/** Makes a clock come after another one. */
export function join(clock: number[], other: readonly number[]): void {
  other.forEach((value, i) => clock[i] = Math.max(clock[i] ?? 0, value));
}
