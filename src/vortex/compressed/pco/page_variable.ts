/**
 * One variable of a page: its numbers, batch by batch, as the page stores them.
 *
 * @module
 */
import type { AnsTable } from "./ans_table.ts";
import type { BitReader } from "./bit_reader.ts";

/** The count of numbers in a batch; a page's last batch may have fewer. */
export const BATCH = 256;

/** The numbers of a batch, as words. */
export interface Latents {
  /** The numbers, or the lower words of 64-bit numbers; the upper half of 16-bit numbers is zero. */
  readonly low: Int32Array;
  /** The upper words of 64-bit numbers. */
  readonly high: Int32Array;
}

/** Allocates room for `count` latents. */
export function latents(count: number): Latents {
  return { low: new Int32Array(count), high: new Int32Array(count) };
}

/** Reads a variable. */
export class PageVariable {
  readonly #table: AnsTable;
  readonly #states = new Int32Array(4);
  readonly #offsetBits = new Uint8Array(BATCH);
  /** The batch read last. */
  readonly latents: Latents = latents(BATCH);

  constructor(table: AnsTable) {
    this.#table = table;
  }

  /** Reads the states of the four interleaved decoders. */
  readStates(reader: BitReader): void {
    for (let i = 0; i < 4; i++) this.#states[i] = reader.read(this.#table.sizeLog);
  }

  /** Reads the next numbers, at most one batch. */
  read(reader: BitReader, count: number): void {
    if (count === 0) return;
    this.#readBins(reader, count);
    if (this.#table.offsetBits > 0) {
      if (this.#table.bits === 64) this.#addLongOffsets(reader, count);
      else this.#addOffsets(reader, count);
    }
    reader.check();
  }

  /** Reads the bins of the next numbers: each bin's lower bound and offset width. */
  #readBins(reader: BitReader, count: number): void {
    const { nodes, low: lows, high: highs, bits } = this.#table;
    const { view, byte } = reader;
    const { low, high } = this.latents;
    const offsetBits = this.#offsetBits;
    let bit = reader.bit;
    let [a = 0, b = 0, c = 0, d = 0] = this.#states;
    const isLong = bits === 64;
    if (nodes.length === 1) {
      // A single bin takes no bits.
      low.fill(lows[0] ?? 0, 0, count);
      if (isLong) high.fill(highs[0] ?? 0, 0, count);
      offsetBits.fill((nodes[0] ?? 0) >>> 18, 0, count);
      return;
    }
    // law vortex/compressed/readBins: vortex/compressed/pco
    for (let i = 0; i < count; i++) {
      const state = a;
      const node = nodes[state] ?? 0;
      const width = node >>> 14 & 15;
      const added = view.getInt32(byte + (bit >>> 3), true) >>> (bit & 7) & (1 << width) - 1;
      bit += width;
      low[i] = lows[state] ?? 0;
      if (isLong) high[i] = highs[state] ?? 0;
      offsetBits[i] = node >>> 18;
      a = b;
      b = c;
      c = d;
      d = (node & 0x3fff) + added;
    }
    // The decoders rotate by one per number: unless the count is a multiple of four, rotate the states back.
    this.#states.set(rotated([a, b, c, d], count & 3));
    reader.advance(bit - reader.bit);
  }

  #addOffsets(reader: BitReader, count: number): void {
    const { view, byte } = reader;
    const { low } = this.latents;
    const offsetBits = this.#offsetBits;
    const mask = this.#table.bits === 16 ? 0xffff : -1;
    let bit = reader.bit;
    // law vortex/compressed/addOffsets: vortex/compressed/pco
    for (let i = 0; i < count; i++) {
      const width = offsetBits[i] ?? 0;
      if (width === 0) continue;
      const at = byte + (bit >>> 3);
      const skipped = bit & 7;
      let word = view.getInt32(at, true) >>> skipped;
      if (width + skipped > 32) word |= view.getUint8(at + 4) << (32 - skipped);
      low[i] = (low[i] ?? 0) + (word & -1 >>> (32 - width)) & mask;
      bit += width;
    }
    reader.advance(bit - reader.bit);
  }

  #addLongOffsets(reader: BitReader, count: number): void {
    const { view, byte } = reader;
    const { low, high } = this.latents;
    const offsetBits = this.#offsetBits;
    let bit = reader.bit;
    // law vortex/compressed/addLongOffsets: vortex/compressed/pco
    for (let i = 0; i < count; i++) {
      const width = offsetBits[i] ?? 0;
      if (width === 0) continue;
      const at = byte + (bit >>> 3);
      const skipped = bit & 7;
      const first = view.getInt32(at, true);
      bit += width;
      let word = first >>> skipped;
      let upper = 0;
      if (width + skipped > 32) {
        const second = view.getInt32(at + 4, true);
        if (skipped !== 0) word |= second << (32 - skipped);
        if (width > 32) {
          upper = second >>> skipped;
          if (width + skipped > 64) upper |= view.getUint8(at + 8) << (32 - skipped);
          upper &= -1 >>> (64 - width);
        }
      }
      if (width < 32) word &= -1 >>> (32 - width);
      const sum = (low[i] ?? 0) + word | 0;
      high[i] = (high[i] ?? 0) + upper + Number(sum >>> 0 < word >>> 0);
      low[i] = sum;
    }
    reader.advance(bit - reader.bit);
  }
}

/** Four states, rotated by `by` places. */
function rotated(states: readonly number[], by: number): readonly number[] {
  return states.map((_, i) => states[(i + 4 - by) & 3] ?? 0);
}
