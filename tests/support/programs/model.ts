/**
 * What the conventions promise, as a model of who holds which memory: an oracle without events or contexts.
 *
 * A holder is any user of memory that it got from another. It uses the memory on streams, and when it is over, the work
 * it has enqueued comes before whatever its giver enqueues next. That is all that a program may rely on.
 *
 * @module
 */
import { join, type Order } from "../stream_lanes.ts";
import type { Convention, Part, Resource } from "./mod.ts";

/** A point in the order of all lanes. */
export type Clock = number[];

/** An access to memory, and the holder that made it. */
export interface Access {
  readonly lane: number;
  readonly number: number;
  readonly by: Holder;
}

/** Memory. */
export interface Block {
  readonly id: number;
  readonly device: number;
  readonly resource: Resource;
  written: Access | null;
  reads: Access[];
}

/** Any user of memory. */
export type Holder = ArrayHolder | ExportHolder | LoanHolder;

interface Common {
  readonly id: number;
  readonly part: Part;
  readonly block: Block;
  /** Whether it must not write. */
  readonly isReadonly: boolean;
  /** Lanes on which it has used the memory. */
  readonly used: Set<number>;
}

/** A buffer of ours or of another library, or an import of ours. */
export interface ArrayHolder extends Common {
  readonly kind: "array";
  /** How it was imported; null for memory that was allocated as this array. */
  readonly from: Origin | null;
  home: number | null;
  /** Work enqueued by holders that had the memory from it: its own giver must be ordered after that, too. */
  readonly mark: Clock;
  /** Exports and leases that pin the memory. */
  pins: number;
  /** Users that do not keep the memory: while there are any, it must not be closed. */
  guests: number;
  isClosed: boolean;
  /** Whether the memory has been freed, or returned. */
  isOver: boolean;
}

/** How an array was imported. */
export type Origin =
  | { readonly kind: "export"; readonly holder: ExportHolder }
  | { readonly kind: "interface"; readonly holder: ArrayHolder; readonly producer: number | null };

/** A DLPack tensor or an Arrow array that has been exported. */
export interface ExportHolder extends Common {
  readonly kind: "export";
  readonly of: ArrayHolder;
  readonly how: Convention;
  /** The lane that its consumer has named, and that was ordered. */
  readonly lane: number | null;
  /** What an Arrow array's event stands for. */
  readonly ready: Clock;
  /** Lanes that have waited for the event. */
  readonly awaited: Set<number>;
  /** `queued`: in a stream whose consumer has not requested it. */
  state: "queued" | "out" | "taken" | "imported" | "released";
  /** What its consumer had enqueued when it released. */
  readonly mark: Clock;
  /** The other child of a struct of two arrays: their memory is returned when both are released. */
  twin: ExportHolder | null;
  /** Whether it is the second one of two. */
  readonly isSecond: boolean;
  /** Whether the consumer has not released the schema. */
  hasSchema: boolean;
  /** Whether its release has been seen. */
  isOver: boolean;
}

/** An Arrow stream that has been exported. */
export interface StreamHolder {
  readonly id: number;
  readonly items: readonly ExportHolder[];
  /** Whether its consumer has taken it over, and has read the schema once. */
  isTaken: boolean;
  isReleased: boolean;
  /** Whether its release has been seen. */
  isOver: boolean;
}

/** How many copies of its schema a stream has ready for its consumer. */
const schemaCopies = 8;

/** A lease, or a consumer of the CUDA Array Interface for the duration of its work. */
export interface LoanHolder extends Common {
  readonly kind: "loan";
  readonly of: ArrayHolder;
  readonly isLease: boolean;
  readonly lane: number;
  /** The lane that the description has named. */
  readonly producer: number | null;
  isOver: boolean;
}

/** Whether an array is another library's own: it waits for no consumer's work on release. */
export function isForeignArray({ from, block }: ArrayHolder): boolean {
  return from === null && block.resource === "foreign";
}

/** The holder that a holder has the memory from. */
export function giverOf(holder: Holder): Holder | null {
  return holder.kind === "array" ? holder.from?.holder ?? null : holder.of;
}

/** Whether a promise of some convention has yet to order a holder's enqueued work before what `to` does. */
export function isPromised(holder: Holder, to: Holder): boolean {
  for (let one: Holder | null = holder; one !== null && one !== to; one = giverOf(one)) if (!one.isOver) return true;
  return false;
}

/** Whether a holder has its memory, directly or indirectly, from another one. */
export function descendsFrom(holder: Holder, from: Holder): boolean {
  for (let one: Holder | null = holder; one !== null; one = giverOf(one)) if (one === from) return true;
  return false;
}

/** The model of all holders. */
export class Holders {
  readonly arrays: ArrayHolder[] = [];
  readonly exports: ExportHolder[] = [];
  readonly streams: StreamHolder[] = [];
  readonly loans: LoanHolder[] = [];
  readonly #order: Order;

  constructor(order: Order) {
    this.#order = order;
  }

  /** How many exports are live, counting one for each struct that its consumer must release. */
  get live(): number {
    let live = 0;
    for (const one of this.exports) {
      if (isForeignArray(one.of)) continue; // not ours
      if (!one.isOver && !one.isSecond) live++;
      if (one.hasSchema) live++;
    }
    for (const { isOver, isTaken } of this.streams) if (!isOver) live += 1 + schemaCopies - (isTaken ? 1 : 0);
    return live;
  }

  /** Whether some release has not been seen yet. */
  get hasUnseen(): boolean {
    return this.exports.some(({ state, isOver }) => state === "released" && !isOver) ||
      this.streams.some(({ isReleased, isOver }) => isReleased && !isOver);
  }

  /** All work that a holder has enqueued. */
  enqueued({ used }: Holder, also: number | null = null): Clock {
    const clock: Clock = [];
    for (const lane of used) join(clock, this.#order.held(lane));
    if (also !== null) join(clock, this.#order.held(also));
    return clock;
  }

  /** Closes an array: its memory is freed or returned once unpinned. */
  close(array: ArrayHolder): void {
    array.isClosed = true;
    this.#endIfUnused(array);
  }

  /** Ends a lease or a guest: the work it has enqueued comes before what its giver does next. */
  giveBack(loan: LoanHolder): void {
    loan.isOver = true;
    const { of } = loan;
    const home = loan.isLease ? of.home : loan.producer;
    if (home !== null) this.#order.after(home, this.#order.held(loan.lane));
    join(of.mark, this.#order.held(loan.lane));
    if (!loan.isLease) of.guests--;
    else {
      of.pins--;
      this.#endIfUnused(of);
    }
  }

  /** A consumer releases. This has no effect until the next look, unless the producer is another library. */
  release(one: ExportHolder, enqueued: Clock): void {
    one.state = "released";
    join(one.mark, enqueued);
  }

  /** Handles what was released, and what that releases in turn. */
  look(): void {
    for (let wasSeen = true; wasSeen;) {
      wasSeen = false;
      for (const stream of this.streams) {
        if (!stream.isReleased || stream.isOver) continue;
        stream.isOver = true;
        // Arrays that its consumer has not requested are released with it.
        for (const item of stream.items) if (item.state === "queued") this.release(item, []);
      }
      for (const one of this.exports) {
        if (one.state === "released" && !one.isOver && (one.twin?.state ?? "released") === "released") {
          wasSeen = true;
          this.#finish(one);
        }
      }
    }
  }

  #finish(one: ExportHolder): void {
    one.isOver = true;
    const { of } = one;
    if (of.home !== null && !isForeignArray(of)) this.#order.after(of.home, one.mark);
    join(of.mark, one.mark);
    of.pins--;
    this.#endIfUnused(of);
  }

  #endIfUnused(array: ArrayHolder): void {
    if (!array.isClosed || array.pins > 0 || array.isOver) return;
    array.isOver = true;
    const { from, home } = array;
    if (from === null) return this.#free(array);
    const enqueued = this.enqueued(array, home);
    join(enqueued, array.mark);
    if (from.kind === "interface") {
      join(from.holder.mark, enqueued);
      if (from.producer !== null && home !== null) this.#order.after(from.producer, this.#order.held(home));
      from.holder.guests--;
      return;
    }
    const isForeign = isForeignArray(from.holder.of);
    // Another library may free at once: the work enqueued here must have completed.
    if (isForeign && home !== null) this.#order.hostAfter(this.#order.upcoming(home));
    this.release(from.holder, enqueued);
    from.holder.hasSchema = false;
    if (isForeign) this.#finish(from.holder);
  }

  /**
   * Frees memory on its home stream, after all its uses: promises must order them, or the program is wrong.
   */
  #free({ block, home }: ArrayHolder): void {
    if (home === null) throw new Error("A program frees memory without a home");
    const known = this.#order.upcoming(home);
    for (const access of [block.written, ...block.reads]) {
      if (access !== null && (known[access.lane] ?? 0) < access.number) {
        throw new Error(`A program frees block ${block.id} on lane ${home} before work of lane ${access.lane} is over`);
      }
    }
    this.#order.work(home);
  }
}
