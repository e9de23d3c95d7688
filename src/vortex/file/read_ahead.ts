/**
 * Reads data before it is needed, and holds no more of it than a given limit.
 *
 * @module
 */
import { type ByteRange, coalesce, type PlannedRead } from "./coalesce.ts";
import type { FileReader } from "./reader.ts";
import { checkThere } from "../wire/source.ts";

/** How far to read ahead. */
export interface ReadAheadOptions {
  /**
   * Maximum bytes of reads that are in flight or have ranges waiting to be taken; a single larger range is read alone.
   */
  readonly bytes: number;
  /** Maximum number of reads in flight. */
  readonly requests: number;
}

/** A read that was started. */
interface Started {
  readonly offset: number;
  readonly length: number;
  readonly bytes: Promise<Uint8Array>;
  /** Number of its ranges that are not taken. */
  waiting: number;
}

/**
 * Reads ranges in the order in which they are needed.
 *
 * Ranges needed soon after each other are read together if they are neighbours: half of what may be held is planned at
 * once, so that the other half is available to work on.
 */
export class ReadAhead {
  readonly #reader: FileReader;
  /** All ranges; undefined once taken. */
  readonly #ranges: (ByteRange | undefined)[] = [];
  readonly #options: ReadAheadOptions;
  /** The read of each range, once started. */
  readonly #reads = new Map<number, Started>();
  /** Planned reads that wait for room, soonest first. */
  readonly #planned: PlannedRead[] = [];
  /** The first range that is not planned yet. */
  #next = 0;
  #held = 0;
  #underWay = 0;
  #wanted = 0;

  constructor(reader: FileReader, ranges: readonly ByteRange[], options: ReadAheadOptions) {
    this.#reader = reader;
    this.#options = options;
    for (const range of ranges) this.add(range);
  }

  /** Adds a range that is needed after those already added. @returns its number, by which it is taken */
  add(range: ByteRange): number {
    this.#wanted += range.length;
    return this.#ranges.push(range) - 1;
  }

  /** Bytes of ranges that were added and not taken. */
  get wanted(): number {
    return this.#wanted;
  }

  /** Bytes held or in flight. */
  get held(): number {
    return this.#held;
  }

  // law vortex/ReadAhead.take: public/untyped
  /** The bytes of a range, which can be taken once. */
  async take(at: number): Promise<Uint8Array> {
    const range = this.#ranges[at];
    if (range === undefined) throw new RangeError(`Cannot take range ${at}: it is gone`);
    this.#wanted -= range.length;
    if (range.length === 0) {
      this.#ranges[at] = undefined;
      return new Uint8Array(0);
    }
    this.#fill();
    if (!this.#reads.has(at)) this.#startFor(at);
    const read = this.#reads.get(at);
    if (read === undefined) throw new RangeError(`Cannot take range ${at}: no read covers it`);
    this.#ranges[at] = undefined;
    try {
      const bytes = await read.bytes;
      checkThere(bytes.buffer); // a source's bytes are used in place
      const start = range.offset - read.offset;
      return bytes.subarray(start, start + range.length);
    } finally {
      this.#reads.delete(at);
      if (--read.waiting === 0) this.#held -= read.length;
      this.#fill();
    }
  }

  // law vortex/ReadAhead.fill: vortex/file/read_ahead
  /** Starts the reads that there is room for. */
  #fill(): void {
    while (this.#underWay < this.#options.requests) {
      if (this.#planned.length === 0) this.#plan();
      const [next] = this.#planned;
      if (next === undefined || this.#held + next.length > this.#options.bytes && this.#held > 0) return;
      this.#planned.shift();
      this.#start(next);
    }
  }

  /** Starts the read of a range needed now, whether there is room or not: the waiting caller may hold the room. */
  #startFor(at: number): void {
    while (this.#next <= at) this.#plan();
    const place = this.#planned.findIndex(({ parts }) => parts.includes(at));
    const [read] = place < 0 ? [] : this.#planned.splice(place, 1);
    if (read === undefined) throw new RangeError(`Cannot take range ${at}: no read covers it`);
    this.#start(read);
  }

  // law vortex/ReadAhead.plan: vortex/file/read_ahead
  /** Plans the next ranges, up to about half the bytes that may be held. */
  #plan(): void {
    const budget = Math.max(1, Math.floor(this.#options.bytes / 2));
    const group: number[] = [];
    let total = 0;
    for (; this.#next < this.#ranges.length; this.#next++) {
      const { length } = this.#ranges[this.#next] ?? { length: 0 };
      if (group.length > 0 && total + length > budget) break;
      group.push(this.#next);
      total += length;
    }
    const ranges = group.map((at) => this.#ranges[at] ?? { offset: 0, length: 0 });
    for (const { offset, length, parts } of coalesce(ranges, { gap: this.#reader.gap, largest: budget })) {
      this.#planned.push({ offset, length, parts: parts.map((part) => group[part] ?? -1) });
    }
  }

  #start({ offset, length, parts }: PlannedRead): void {
    this.#underWay++;
    this.#held += length;
    const bytes = this.#reader.read(offset, length).finally(() => this.#underWay--);
    bytes.catch(() => {}); // the caller that takes a range of it sees the error
    const started: Started = { offset, length, bytes, waiting: parts.length };
    for (const part of parts) this.#reads.set(part, started);
  }
}
