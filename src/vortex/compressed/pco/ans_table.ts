/**
 * The bins of a variable and the states of the tANS decoder that selects the next bin.
 *
 * @module
 */
import type { Fail } from "../../error.ts";
import type { BitReader } from "./bit_reader.ts";

/** Bit width of a variable's numbers; lookbacks and dictionary indices always have 32, whatever the numbers have. */
export type LatentBits = 16 | 32 | 64;

/** The meaning of each decoder state; the lengths of the arrays are powers of two. */
export interface AnsTable {
  readonly bits: LatentBits;
  /** The base-2 logarithm of the number of states. */
  readonly sizeLog: number;
  /** Whether there is at least one bin; without bins, no number can be read. */
  readonly hasBins: boolean;
  /** Per state: the next state before bits are added (14 bits), the count of those bits (4), the offset width (7). */
  readonly nodes: Int32Array;
  /** The lower bound of the state's bin; its lower word if numbers have 64 bits. */
  readonly low: Int32Array;
  /** The upper word of that bound; empty unless numbers have 64 bits. */
  readonly high: Int32Array;
  /** The maximum bit width of any offset. */
  readonly offsetBits: number;
}

/** Reads a variable's bins. */
export function readAnsTable(reader: BitReader, bits: LatentBits, fail: Fail): AnsTable {
  const sizeLog = reader.read(4);
  const count = reader.read(15);
  const size = 2 ** sizeLog;
  // law vortex/compressed/readAnsTable: vortex/compressed/pco, vortex/compressed/malformed
  if (sizeLog > 14) fail(`a table of 2^${sizeLog} states, expected at most 2^14`);
  if (count > size) fail(`${count} bins, expected at most the ${size} states of their table`);
  if (count === 1 && sizeLog !== 0) fail(`one bin with ${size} states, expected one`);
  const weights = new Int32Array(Math.max(count, 1)).fill(1);
  const lows = new Int32Array(weights.length);
  const highs = new Int32Array(weights.length);
  const offsets = new Int32Array(weights.length);
  const offsetWidth = Math.log2(bits) + 1;
  let sum = count === 0 ? 1 : 0;
  for (let bin = 0; bin < count; bin++) {
    weights[bin] = reader.read(sizeLog) + 1;
    sum += weights[bin] ?? 0;
    [lows[bin], highs[bin]] = reader.readWords(bits);
    offsets[bin] = reader.read(offsetWidth);
    if ((offsets[bin] ?? 0) > bits) fail(`bin ${bin} has offsets of ${offsets[bin]} bits, expected at most ${bits}`);
  }
  if (sum !== size) fail(`the weights of the bins add up to ${sum}, expected the ${size} states of their table`);
  const bins = binsOfStates(weights, size);
  const nodes = new Int32Array(size);
  const low = new Int32Array(size);
  const high = new Int32Array(bits === 64 ? size : 0);
  const nextOf = weights.slice(); // per bin, the value for its next state
  const sizeZeros = Math.clz32(size);
  for (let state = 0; state < size; state++) {
    const bin = bins[state] ?? 0;
    const next = nextOf[bin] ?? 0;
    nextOf[bin] = next + 1;
    const width = Math.clz32(next) - sizeZeros;
    nodes[state] = (next << width) - size | width << 14 | (offsets[bin] ?? 0) << 18;
    low[state] = lows[bin] ?? 0;
    if (bits === 64) high[state] = highs[bin] ?? 0;
  }
  return { bits, sizeLog, hasBins: count > 0, nodes, low, high, offsetBits: offsets.reduce((a, b) => Math.max(a, b)) };
}

/** The bin of each state: bins are spread in order, with a stride of about three fifths of the table. */
function binsOfStates(weights: Int32Array, size: number): Int32Array {
  const stride = Math.floor(3 * size / 5) | 1;
  const bins = new Int32Array(size);
  let at = 0;
  for (let bin = 0; bin < weights.length; bin++) {
    for (let i = weights[bin] ?? 0; i > 0; i--) {
      bins[at] = bin;
      at = (at + stride) & (size - 1);
    }
  }
  return bins;
}
