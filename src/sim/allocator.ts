/**
 * Tracks which offsets of a device's memory are in use: the device hands out segments, and heaps divide them into
 * blocks.
 *
 * @module
 */
import { roundUp } from "../ffi/mod.ts";

/** Granularity in bytes at which the device hands out memory. */
export const segmentBytes = 2 ** 21;

/** Granularity in bytes at which a heap hands out memory, and to which addresses are aligned. */
export const blockBytes = 512;

/** The segments of a device. */
export class Segments {
  /** Bytes of memory that the device has. */
  readonly limit: number;
  #reserved = 0;
  #end = segmentBytes; // offset 0 is never handed out, so that the first address of a device is never a valid one
  readonly #released: { readonly offset: number; readonly bytes: number }[] = [];

  /** @param limit bytes of memory that the device has */
  constructor(limit: number) {
    this.limit = limit;
  }

  /** Bytes in use. */
  get reserved(): number {
    return this.#reserved;
  }

  /** Takes memory: the most recently released of this size, if any. Null if there is not enough. */
  reserve(bytes: number): number | null {
    if (this.#reserved + bytes > this.limit) return null;
    this.#reserved += bytes;
    const at = this.#released.findLastIndex((one) => one.bytes === bytes);
    const [again] = at < 0 ? [] : this.#released.splice(at, 1);
    if (again !== undefined) return again.offset;
    const offset = this.#end;
    this.#end += bytes;
    return offset;
  }

  /** Returns memory to the device. */
  release(offset: number, bytes: number): void {
    this.#reserved -= bytes;
    this.#released.push({ offset, bytes });
  }
}

/** Free memory of a heap, tagged by the heap's owner. */
export interface FreeBlock<Tag> {
  readonly offset: number;
  readonly bytes: number;
  /** Why the block may not be usable yet; null if it is. */
  readonly tag: Tag | null;
}

interface Segment {
  readonly offset: number;
  readonly bytes: number;
}

/** A heap: carves blocks of any size out of segments. The most recently freed block is handed out first. */
export class Heap<Tag> {
  readonly #segments: Segments;
  readonly #own: Segment[] = [];
  /** The most recently freed block is at the end. */
  #free: FreeBlock<Tag>[] = [];
  #reserved = 0;

  /** Creates a heap that takes its memory from a device. */
  constructor(segments: Segments) {
    this.#segments = segments;
  }

  /** Bytes taken from the device. */
  get reserved(): number {
    return this.#reserved;
  }

  /**
   * Takes a block out of free memory.
   *
   * @param bytes a multiple of `blockBytes`
   * @param usable whether a free block may be used
   * @returns the block, or null if none fits
   */
  reuse(bytes: number, usable: (block: FreeBlock<Tag>) => boolean): FreeBlock<Tag> | null {
    const at = this.#free.findLastIndex((block) => block.bytes >= bytes && usable(block));
    const block = this.#free[at];
    if (block === undefined) return null;
    const rest = { offset: block.offset + bytes, bytes: block.bytes - bytes, tag: block.tag };
    this.#free.splice(at, 1, ...(rest.bytes > 0 ? [rest] : []));
    return { ...block, bytes };
  }

  /**
   * Takes a block out of a new segment.
   *
   * @returns its offset, or null if the device does not have enough
   */
  grow(bytes: number): number | null {
    const whole = roundUp(bytes, segmentBytes);
    const offset = this.#segments.reserve(whole);
    if (offset === null) return null;
    this.#own.push({ offset, bytes: whole });
    this.#reserved += whole;
    // At the front: memory that has been used is handed out before memory that never was.
    if (whole > bytes) this.#free.unshift({ offset: offset + bytes, bytes: whole - bytes, tag: null });
    return offset;
  }

  /** Takes a block back. It is the first to be handed out again. */
  release(block: FreeBlock<Tag>): void {
    this.#free.push(block);
  }

  // law sim/Heap.join: sim/pools, sim/refusals
  /**
   * Joins adjacent blocks that are usable now, as `settled` says of their tags. The joined block counts as freed when
   * the last of them was.
   */
  join(settled: (tag: Tag) => boolean): void {
    const blocks = this.#free.map((block) =>
      block.tag !== null && settled(block.tag) ? { ...block, tag: null } : block
    );
    const age = new Map(blocks.map((block, at) => [block.offset, at]));
    const kept: { readonly block: FreeBlock<Tag>; readonly at: number }[] = [];
    for (const block of blocks.toSorted((a, b) => a.offset - b.offset)) {
      const at = age.get(block.offset) ?? 0;
      const last = kept.at(-1);
      const adjoins = last !== undefined && last.block.offset + last.block.bytes === block.offset;
      const begins = this.#own.some(({ offset }) => offset === block.offset); // a segment ends where the next begins
      if (adjoins && !begins && last.block.tag === null && block.tag === null) {
        const joined = { ...last.block, bytes: last.block.bytes + block.bytes };
        kept[kept.length - 1] = { block: joined, at: Math.max(last.at, at) };
      } else kept.push({ block, at });
    }
    this.#free = kept.sort((a, b) => a.at - b.at).map(({ block }) => block);
  }

  /**
   * Returns unused segments to the device, as long as at least `keep` bytes remain.
   *
   * @returns the segments returned
   */
  trim(keep: number, settled: (tag: Tag) => boolean): Segment[] {
    this.join(settled);
    const released: Segment[] = [];
    for (const block of this.#free.filter(({ tag }) => tag === null)) {
      const at = this.#own.findIndex(({ offset, bytes }) => offset === block.offset && bytes === block.bytes);
      const segment = this.#own[at];
      if (segment === undefined || this.#reserved - segment.bytes < keep) continue;
      this.#own.splice(at, 1);
      this.#free.splice(this.#free.indexOf(block), 1);
      this.#reserved -= segment.bytes;
      this.#segments.release(segment.offset, segment.bytes);
      released.push(segment);
    }
    return released;
  }
}
