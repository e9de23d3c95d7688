/**
 * The accesses to bytes, and what must be ordered after them.
 *
 * @module
 */
import { type Interval, IntervalSet } from "./interval_set.ts";
import type { Clock, StreamClock, VectorClocks } from "./vector_clocks.ts";
import type { CallSite } from "./call_site.ts";

/** What an access does with its bytes. */
export type AccessKind = "read" | "write" | "allocation" | "free" | "kernel";

/** Work that touches memory, with its place in the order. */
export interface Access {
  /** The stream. */
  readonly stream: StreamClock;
  /** Its number there. */
  readonly tick: number;
  /** Its number in the timeline. */
  readonly seq: number;
  /** What it does. */
  readonly kind: AccessKind;
  /** Whether it changes the bytes, or begins or ends their lifetime; null for a kernel if unknown. */
  readonly writes: boolean | null;
  /** The driver's function. */
  readonly call: string;
  /** Where it was called. */
  readonly site: CallSite;
  /** The address of the first byte that it touches. */
  readonly start: number;
  /** The address after the last byte. */
  readonly end: number;
}

/** Whether an access happened before work with this clock. */
export function isBefore({ stream, tick }: Access, clock: readonly number[]): boolean {
  return (clock[stream.index] ?? 0) >= tick;
}

/** The last accesses to some bytes: the last change, and the reads since, the last one of each stream. */
export class History {
  /** The last change. */
  write: Access | null = null;
  /** Reads since. */
  reads: readonly Access[] = noReads;

  // law checker/History.conflict: checker/checker
  /** The earlier access that a new access is unordered with, or null. */
  conflict(writes: boolean, clock: Clock): Access | null {
    if (this.write !== null && !isBefore(this.write, clock)) return this.write;
    if (writes) { for (const read of this.reads) if (!isBefore(read, clock)) return read; }
    return null;
  }

  /**
   * Adds an access. Accesses before a write can be forgotten: what is ordered after the write is ordered after them
   * too.
   */
  add(access: Access, order: VectorClocks): void {
    if (access.writes === true) {
      this.write = access;
      this.reads = noReads;
    } else {
      const reads = this.reads.filter(({ stream, tick }) =>
        stream.index !== access.stream.index && !order.isOver(stream.index, tick)
      );
      reads.push(access);
      this.reads = reads;
      this.#forgetWrite(order);
    }
  }

  /** Forgets what the host has waited for. @returns whether anything is left */
  prune(order: VectorClocks): boolean {
    this.reads = this.reads.filter(({ stream, tick }) => !order.isOver(stream.index, tick));
    this.#forgetWrite(order);
    return this.write !== null || this.reads.length > 0;
  }

  // law checker/History.forgetWrite: checker/checker
  #forgetWrite(order: VectorClocks): void {
    if (this.write !== null && order.isOver(this.write.stream.index, this.write.tick)) this.write = null;
  }
}

const noReads: readonly Access[] = [];

/** Bytes with the same history. */
interface Span extends Interval {
  readonly start: number;
  readonly end: number;
  readonly history: History;
}

/** The most pieces that are kept: beyond this, the oldest are forgotten. */
const maxSpans = 1 << 16;

/** The history of a range of memory, in pieces. */
export class RangeHistory {
  readonly #spans = new IntervalSet<Span>();
  #sweepAt = 1024;

  /** Adds an access to some of its bytes. @returns the access that it is unordered with, or null */
  touch(access: Access, start: number, end: number, clock: Clock, order: VectorClocks): Access | null {
    const spans = this.#spans;
    const at = spans.indexAt(start);
    const first = spans.at(at);
    const writes = access.writes === true;
    if (first !== undefined && first.start === start && first.end === end) {
      const conflict = first.history.conflict(writes, clock);
      first.history.add(access, order);
      return conflict;
    }
    const conflict = writes
      ? this.#write(access, start, end, at, clock)
      : this.#read(access, start, end, at, clock, order);
    if (spans.count > this.#sweepAt) this.#sweep(order);
    return conflict;
  }

  /** The access that work with this clock would be unordered with if it touched these bytes, or null. */
  conflict(writes: boolean, start: number, end: number, clock: Clock): Access | null {
    let index = this.#spans.indexAt(start);
    for (let span = this.#spans.at(index); span !== undefined && span.start < end; span = this.#spans.at(++index)) {
      const conflict = span.history.conflict(writes, clock);
      if (conflict !== null) return conflict;
    }
    return null;
  }

  /** Forgets the history of some bytes, because they are allocated anew. */
  forget(start: number, end: number): void {
    const at = this.#spans.indexAt(start);
    const first = this.#spans.at(at);
    if (first === undefined || first.start >= end) return;
    this.#cut(start);
    this.#cut(end);
    this.#spans.removeOverlapping(start, end);
  }

  // law checker/RangeHistory.write: checker/checker
  /** Replaces whatever was there by one span for all bytes. */
  #write(access: Access, start: number, end: number, at: number, clock: Clock): Access | null {
    const spans = this.#spans;
    let conflict: Access | null = null;
    let index = at;
    const pieces: Span[] = [];
    for (let span = spans.at(index); span !== undefined && span.start < end; span = spans.at(++index)) {
      conflict ??= span.history.conflict(true, clock);
      if (span.start < start) pieces.push({ start: span.start, end: start, history: span.history });
      if (span.end > end) pieces.push({ start: end, end: span.end, history: copyOf(span.history) });
    }
    const history = new History();
    history.write = access;
    const written = { start, end, history };
    const [head] = pieces;
    if (head !== undefined && head.start < start) pieces.splice(1, 0, written);
    else pieces.unshift(written);
    spans.replace(at, index - at, ...pieces);
    return conflict;
  }

  // law checker/RangeHistory.read: checker/checker
  /** Adds the read to every piece, and turns the gaps between them into pieces. */
  #read(access: Access, start: number, end: number, at: number, clock: Clock, order: VectorClocks): Access | null {
    const spans = this.#spans;
    let conflict: Access | null = null;
    let index = at;
    let reached = start;
    const pieces: Span[] = [];
    const gap = (to: number): void => {
      if (to <= reached) return;
      const history = new History();
      history.add(access, order);
      pieces.push({ start: reached, end: to, history });
    };
    for (let span = spans.at(index); span !== undefined && span.start < end; span = spans.at(++index)) {
      conflict ??= span.history.conflict(false, clock);
      gap(span.start);
      const [from, to] = [Math.max(span.start, start), Math.min(span.end, end)];
      if (span.start < from) pieces.push({ start: span.start, end: from, history: copyOf(span.history) });
      const rest = span.end > to ? { start: to, end: span.end, history: copyOf(span.history) } : null;
      span.history.add(access, order);
      pieces.push({ start: from, end: to, history: span.history });
      if (rest !== null) pieces.push(rest);
      reached = to;
    }
    gap(end);
    spans.replace(at, index - at, ...pieces);
    return conflict;
  }

  #cut(address: number): void {
    const at = this.#spans.indexAt(address);
    const span = this.#spans.at(at);
    if (span === undefined || span.start >= address) return;
    const { start, end, history } = span;
    this.#spans.replace(at, 1, { start, end: address, history }, { start: address, end, history: copyOf(history) });
  }

  #sweep(order: VectorClocks): void {
    this.#spans.retain(({ history }) => history.prune(order));
    if (this.#spans.count > maxSpans) {
      const newest = ({ history }: Span) => Math.max(history.write?.seq ?? 0, ...history.reads.map(({ seq }) => seq));
      const limit = this.#spans.all.map(newest).sort((a, b) => b - a)[maxSpans >> 1] ?? 0;
      this.#spans.retain((span) => newest(span) > limit);
    }
    this.#sweepAt = Math.max(1024, 2 * this.#spans.count);
  }
}

function copyOf({ write, reads }: History): History {
  const copy = new History();
  copy.write = write;
  copy.reads = reads;
  return copy;
}
