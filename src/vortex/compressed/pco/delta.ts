/**
 * Turns differences back into numbers, in place, batch by batch. Differences are stored with their top bit inverted.
 *
 * The output lags behind the input by as many numbers as the page starts with.
 *
 * @module
 */
import type { Fail } from "../../error.ts";
import type { LatentBits } from "./ans_table.ts";
import type { Convolution, PcoDelta } from "./chunk_meta.ts";
import { BATCH, type Latents, latents } from "./page_variable.ts";

/** Turns a batch of differences into numbers. Only the first `read` come from the page; any others are meaningless. */
export interface DeltaDecoder {
  apply(batch: Latents, count: number, read: number, lookbacks: Latents | null): void;
}

/**
 * The decoder for a variable's differences in a page.
 *
 * @param states the numbers that the page starts with
 * @param length the count of numbers in the page
 */
export function deltaDecoder(
  delta: PcoDelta,
  bits: LatentBits,
  states: Latents,
  length: number,
  fail: Fail,
): DeltaDecoder | null {
  switch (delta.kind) {
    case "none":
      return null;
    case "consecutive":
      return new ConsecutiveSums(bits, states);
    case "lookback":
      return new Lookback(bits, states, length, delta.window, fail);
    case "conv1":
      return new Conv1(bits, states, delta.convolution);
  }
}

/** Inverts the top bits. */
function recenter({ low, high }: Latents, count: number, bits: LatentBits): void {
  const [words, top] = bits === 64 ? [high, 1 << 31] : [low, 1 << (bits - 1)];
  for (let i = 0; i < count; i++) words[i] = (words[i] ?? 0) ^ top;
}

/** Running sums of the differences, which may themselves be running sums of differences, and so on. */
class ConsecutiveSums implements DeltaDecoder {
  readonly #bits: LatentBits;
  readonly #moments: Latents;

  constructor(bits: LatentBits, moments: Latents) {
    this.#bits = bits;
    this.#moments = moments;
  }

  apply(batch: Latents, count: number): void {
    recenter(batch, count, this.#bits);
    const { low: lows, high: highs } = this.#moments;
    // law vortex/compressed/ConsecutiveSums: vortex/compressed/pco
    for (let order = lows.length - 1; order >= 0; order--) {
      const [low, high] = [lows[order] ?? 0, highs[order] ?? 0];
      [lows[order], highs[order]] = this.#bits === 64
        ? sumLong(batch, count, low, high)
        : [sum(batch.low, count, low, this.#bits === 16 ? 0xffff : -1), 0];
    }
  }
}

/** Replaces each number with the sum of all before it. @returns the total */
function sum(words: Int32Array, count: number, total: number, mask: number): number {
  for (let i = 0; i < count; i++) {
    const word = words[i] ?? 0;
    words[i] = total;
    total = total + word & mask;
  }
  return total;
}

function sumLong({ low, high }: Latents, count: number, totalLow: number, totalHigh: number) {
  for (let i = 0; i < count; i++) {
    const word = low[i] ?? 0;
    const upper = high[i] ?? 0;
    low[i] = totalLow;
    high[i] = totalHigh;
    totalLow = totalLow + word | 0;
    totalHigh = totalHigh + upper + Number(totalLow >>> 0 < word >>> 0) | 0;
  }
  return [totalLow, totalHigh] as const;
}

/** Differences from an earlier number; another variable says how far back it is. */
class Lookback implements DeltaDecoder {
  readonly #bits: LatentBits;
  readonly #window: number;
  readonly #fail: Fail;
  /** All numbers of the page. */
  readonly #past: Latents;
  /** The index in `#past` that the next difference goes to. */
  #at: number;
  /** The index in `#past` of the next number to return. */
  #out = 0;

  constructor(bits: LatentBits, states: Latents, length: number, window: number, fail: Fail) {
    this.#bits = bits;
    this.#window = window;
    this.#fail = fail;
    this.#at = states.low.length;
    this.#past = latents(this.#at + length);
    this.#past.low.set(states.low);
    this.#past.high.set(states.high);
  }

  apply(batch: Latents, count: number, read: number, lookbacks: Latents | null): void {
    recenter(batch, read, this.#bits);
    const { low, high } = this.#past;
    const isLong = this.#bits === 64;
    const mask = this.#bits === 16 ? 0xffff : -1;
    // law vortex/compressed/Lookback: vortex/compressed/pco, vortex/compressed/malformed
    for (let i = 0; i < read; i++) {
      const at = this.#at + i;
      const back = (lookbacks?.low[i] ?? 0) >>> 0;
      if (back < 1 || back > this.#window) this.#fail(`a lookback of ${back}, expected 1 to ${this.#window}`);
      const from = at - back; // zeros precede the page's first number
      const word = batch.low[i] ?? 0;
      const sum = (from < 0 ? 0 : low[from] ?? 0) + word & mask;
      low[at] = sum;
      if (isLong) {
        high[at] = (batch.high[i] ?? 0) + (from < 0 ? 0 : high[from] ?? 0) + Number(sum >>> 0 < word >>> 0);
      }
    }
    this.#at += read;
    batch.low.set(low.subarray(this.#out, this.#out + count));
    if (isLong) batch.high.set(high.subarray(this.#out, this.#out + count));
    this.#out += count;
  }
}

/** Differences from the prediction made by a weighted sum of the preceding numbers. */
class Conv1 implements DeltaDecoder {
  readonly #bits: LatentBits;
  readonly #order: number;
  /** The last `#order` numbers, followed by room for a batch. */
  readonly #past: Latents;
  readonly #lowHalves: Float64Array;
  readonly #highHalves: Float64Array;
  readonly #bias: readonly [low: number, middle: number, high: number];
  readonly #quantization: number;

  constructor(bits: LatentBits, states: Latents, { weights, bias, quantization }: Convolution) {
    this.#bits = bits;
    this.#order = weights.length;
    this.#past = latents(this.#order + BATCH);
    this.#past.low.set(states.low);
    this.#past.high.set(states.high);
    // A product of half a weight and a word is exact in a double, and so is a sum of 32 of them.
    this.#lowHalves = Float64Array.from(weights, (weight) => weight & 0xffff);
    this.#highHalves = Float64Array.from(weights, (weight) => weight >> 16);
    this.#bias = [Number(bias & 0xffffn), Number(bias >> 16n & 0xffffn), Number(bias >> 32n)];
    this.#quantization = quantization;
  }

  apply(batch: Latents, count: number): void {
    recenter(batch, count, this.#bits);
    const { low, high } = this.#past;
    const order = this.#order;
    const isLong = this.#bits === 64;
    const mask = this.#bits === 16 ? 0xffff : -1;
    const predicted = { low: 0, high: 0 };
    // law vortex/compressed/Conv1: vortex/compressed/pco
    for (let i = 0; i < count; i++) {
      this.#predict(i, predicted);
      const at = order + i;
      const word = batch.low[i] ?? 0;
      const sum = predicted.low + word & mask;
      low[at] = sum;
      if (isLong) high[at] = (batch.high[i] ?? 0) + predicted.high + Number(sum >>> 0 < word >>> 0);
      batch.low[i] = low[i] ?? 0;
      if (isLong) batch.high[i] = high[i] ?? 0;
    }
    low.copyWithin(0, count, count + order);
    high.copyWithin(0, count, count + order);
  }

  /** The low 64 bits of the weighted sum of `order` numbers from `at` on, clamped to at least 0 and shifted. */
  #predict(at: number, predicted: { low: number; high: number }): void {
    const { low, high } = this.#past;
    const [lowHalves, highHalves] = [this.#lowHalves, this.#highHalves];
    let [place0, place16, place32] = this.#bias; // multiples of 2^0, 2^16, 2^32
    let place48 = 0;
    const order = this.#order;
    for (let j = 0; j < order; j++) {
      const [weightLow, weightHigh] = [lowHalves[j] ?? 0, highHalves[j] ?? 0];
      const word = (low[at + j] ?? 0) >>> 0;
      place0 += weightLow * word;
      place16 += weightHigh * word;
      if (this.#bits === 64) {
        const upper = (high[at + j] ?? 0) >>> 0;
        place32 += weightLow * upper;
        place48 += weightHigh * upper;
      }
    }
    // Propagate carries so that three places hold 16 bits each, and the last one the sign and the rest.
    const carry16 = Math.floor(place0 / 0x10000);
    const carry32 = Math.floor((place16 += carry16) / 0x10000);
    const carry48 = Math.floor((place32 += carry32) / 0x10000);
    place48 += carry48;
    if (place48 < 0) {
      predicted.low = predicted.high = 0;
      return;
    }
    const word0 = (place0 - carry16 * 0x10000) | (place16 - carry32 * 0x10000) << 16;
    const word1 = (place32 - carry48 * 0x10000) | place48 % 0x10000 << 16;
    const word2 = Math.floor(place48 / 0x10000) | 0;
    const shift = this.#quantization;
    predicted.low = shift === 0 ? word0 : word0 >>> shift | word1 << (32 - shift);
    predicted.high = shift === 0 ? word1 : word1 >>> shift | word2 << (32 - shift);
  }
}
