/**
 * pco's wrapped format, written from its description with big integers: input for testing the decoder.
 *
 * Choices here are made for coverage of all that a file may hold, not for compression: bins and weights, initial
 * decoder states, bases and orders are the caller's or random.
 *
 * @module
 */
import { BitWriter } from "./bit_writer.ts";

/** How numbers are split into variables. */
export type ModeChoice =
  | { readonly kind: "classic" }
  | { readonly kind: "intMult"; readonly base: bigint }
  | { readonly kind: "floatMult"; readonly base: number }
  | { readonly kind: "floatQuant"; readonly bits: number }
  | { readonly kind: "dict" };

/** How variables are turned into differences. */
export type DeltaChoice =
  | { readonly kind: "none" }
  | { readonly kind: "consecutive"; readonly order: number; readonly both: boolean }
  | { readonly kind: "lookback"; readonly windowLog: number; readonly stateLog: number; readonly both: boolean }
  | {
    readonly kind: "conv1";
    readonly quantization: number;
    readonly bias: bigint;
    readonly weights: readonly number[];
  };

/** What to write. */
export interface PcoChoice {
  readonly version: number;
  readonly family: "u" | "i" | "f";
  readonly bits: 16 | 32 | 64;
  /** The bits of the numbers, in pages. */
  readonly pages: readonly (readonly bigint[])[];
  readonly mode: ModeChoice;
  readonly delta: DeltaChoice;
  /** The base-2 logarithm of the number of states of every table with more than one bin. */
  readonly sizeLog: number;
  /** Random numbers below their argument. */
  readonly random: (below: number) => number;
}

/** What was written. */
export interface PcoBytes {
  readonly header: Uint8Array;
  readonly meta: Uint8Array;
  readonly pages: readonly Uint8Array[];
}

interface Bin {
  readonly weight: number;
  readonly lower: bigint;
  readonly offsetBits: number;
}

/** A variable of one page: the contents of the head, and of the batches. */
interface Stream {
  readonly states: readonly bigint[];
  readonly body: readonly bigint[];
}

/** Writes one chunk. */
export function encodePco(choice: PcoChoice): PcoBytes {
  const { version, bits, mode, delta } = choice;
  const dictionary = [...new Set(choice.pages.flat().map((bits) => ordered(bits, choice)))];
  const split = choice.pages.map((page) => page.map((number) => splitNumber(number, choice, dictionary)));
  const firstBits = mode.kind === "dict" ? 32 : bits;
  const hasSecond = mode.kind !== "classic" && mode.kind !== "dict";
  const pages = split.map((page) => {
    const lookbacks = delta.kind === "lookback" ? chooseLookbacks(page.length, delta, choice.random) : [];
    const both = "both" in delta && delta.both;
    return {
      lookbacks,
      first: difference(page.map(([first]) => first), delta, firstBits, lookbacks),
      second: hasSecond
        ? difference(page.map(([, second]) => second), both ? delta : { kind: "none" }, bits, lookbacks)
        : null,
    };
  });
  const variables: { readonly bits: number; readonly streams: readonly Stream[] }[] = [
    ...(delta.kind === "lookback"
      ? [{
        bits: 32,
        streams: pages.map(({ lookbacks }) => ({ states: [], body: lookbacks.map(BigInt) })),
      }]
      : []),
    { bits: firstBits, streams: pages.map(({ first }) => first) },
    ...(hasSecond ? [{ bits, streams: pages.map(({ second }) => second ?? { states: [], body: [] }) }] : []),
  ];
  const coded = variables.map(({ bits, streams }) => {
    const bins = chooseBins(
      streams.flatMap(({ body }) => body),
      choice,
      bits === 32 && streams === variables[0]?.streams,
    );
    const sizeLog = bins.length > 1 ? choice.sizeLog : 0;
    return { bits, streams, bins, sizeLog };
  });
  const meta = new BitWriter();
  writeMode(meta, choice, dictionary);
  writeDelta(meta, choice);
  for (const { bits, bins, sizeLog } of coded) {
    meta.write(sizeLog, 4);
    meta.write(bins.length, 15);
    for (const { weight, lower, offsetBits } of bins) {
      meta.write(weight - 1, sizeLog);
      meta.write(lower, bits);
      meta.write(offsetBits, Math.log2(bits) + 1);
    }
  }
  return {
    header: Uint8Array.from(version >= 4 ? [version, 1] : [version]),
    meta: meta.bytes(),
    pages: choice.pages.map(({ length }, page) => {
      const writer = new BitWriter();
      const parts = coded.map(({ streams, bins, sizeLog, bits }) => {
        const { states, body } = streams[page] ?? { states: [], body: [] };
        const { first, steps } = encodeAns(body, bins, sizeLog, choice.random);
        for (const state of states) writer.write(state, bits);
        for (const state of first) writer.write(state, sizeLog);
        return steps;
      });
      writer.align();
      for (let start = 0; start < length; start += 256) {
        for (const steps of parts) {
          for (const { value, width } of steps.slice(start, start + 256)) writer.write(value, width);
          for (const { offset, bin } of steps.slice(start, start + 256)) writer.write(offset, bin.offsetBits);
        }
      }
      return writer.bytes();
    }),
  };
}

/** A number's bits, mapped so that they order as the numbers do. */
export function ordered(number: bigint, { family, bits }: Pick<PcoChoice, "family" | "bits">): bigint {
  const top = 1n << BigInt(bits - 1);
  if (family === "u") return number;
  return family === "f" && (number & top) !== 0n ? BigInt.asUintN(bits, ~number) : number ^ top;
}

/** The variables of a number. */
function splitNumber(number: bigint, choice: PcoChoice, dictionary: readonly bigint[]): readonly [bigint, bigint] {
  const { mode, bits, random } = choice;
  const latent = ordered(number, choice);
  const middle = 1n << BigInt(bits - 1);
  const wrap = (value: bigint) => BigInt.asUintN(bits, value);
  switch (mode.kind) {
    case "classic":
      return [latent, 0n];
    case "intMult": {
      // Any multiple works if the remainder compensates, modulo 2^bits.
      const first = random(4) === 0 ? wrap(BigInt(random(2 ** 30)) * 0x1_0000_0001_0001n) : latent / mode.base;
      return [first, wrap(latent - first * mode.base)];
    }
    case "floatMult": {
      const multiple = roundedMultiple(number, mode.base, bits);
      const first = integerFloat(multiple, bits);
      const product = productBits(multiple, mode.base, bits);
      return [first, wrap(latent - ordered(product, choice) + middle)];
    }
    case "floatQuant": {
      const all = (1n << BigInt(mode.bits)) - 1n;
      const lower = latent & all;
      return [latent >> BigInt(mode.bits), latent >= middle ? lower : all - lower];
    }
    case "dict":
      return [BigInt(dictionary.indexOf(latent)), 0n];
  }
}

const floats = { 16: { digits: 11 }, 32: { digits: 24 }, 64: { digits: 53 } } as const;

/** A float from its bits. */
export function floatOf(bits: bigint, width: 16 | 32 | 64): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, bits, true);
  return width === 16 ? view.getFloat16(0, true) : width === 32 ? view.getFloat32(0, true) : view.getFloat64(0, true);
}

/** A float's bits; for NaN the usual ones. */
export function floatBits(number: number, width: 16 | 32 | 64): bigint {
  const view = new DataView(new ArrayBuffer(8));
  if (width === 16) view.setFloat16(0, number, true);
  else if (width === 32) view.setFloat32(0, number, true);
  else view.setFloat64(0, number, true);
  return view.getBigUint64(0, true);
}

/** The bits of an integral float near `number / base`; a NaN keeps its own bits. */
function roundedMultiple(number: bigint, base: number, width: 16 | 32 | 64): bigint {
  const value = floatOf(number, width);
  if (Number.isNaN(value)) return number;
  const quotient = value / base;
  const integer = Math.trunc(quotient); // in doubles; may not be an integer once cut to fewer bits, so truncated again
  return floatBits(Math.trunc(floatOf(floatBits(Object.is(integer, -0) ? -0 : integer, width), width)), width);
}

/** The variable for an integral float: up to 2^digits the integer itself, then the floats one by one. */
function integerFloat(number: bigint, width: 16 | 32 | 64): bigint {
  const middle = 1n << BigInt(width - 1);
  const magnitude = number & (middle - 1n);
  const exact = 2n ** BigInt(floats[width].digits);
  const exactBits = floatBits(Number(exact), width);
  const integer = magnitude < exactBits ? BigInt(floatOf(magnitude, width)) : exact + magnitude - exactBits;
  return number < middle ? middle + integer : middle - 1n - integer;
}

/** The bits of a float times another one; a NaN is kept, but made quiet. */
function productBits(multiple: bigint, base: number, width: 16 | 32 | 64): bigint {
  const value = floatOf(multiple, width);
  if (Number.isNaN(value)) return multiple | 1n << BigInt(floats[width].digits - 2);
  return floatBits(value * base, width);
}

/** How far each number looks back: to any number before it in the window, or to the zeros before those. */
function chooseLookbacks(
  length: number,
  { windowLog, stateLog }: { readonly windowLog: number; readonly stateLog: number },
  random: (below: number) => number,
): readonly number[] {
  const count = Math.max(0, length - 2 ** stateLog);
  return Array.from({ length: count }, () => 1 + random(2 ** windowLog));
}

/** The differences of a variable, and the initial state of the page. */
function difference(
  latents: readonly bigint[],
  delta: DeltaChoice,
  bits: number,
  lookbacks: readonly number[],
): Stream {
  const middle = 1n << BigInt(bits - 1);
  const wrap = (value: bigint) => BigInt.asUintN(bits, value);
  const padded = (states: readonly bigint[], count: number) => Array.from({ length: count }, (_, i) => states[i] ?? 0n);
  switch (delta.kind) {
    case "none":
      return { states: [], body: latents };
    case "consecutive": {
      const states: bigint[] = [];
      let rest = latents;
      for (let order = 0; order < delta.order; order++) {
        states.push(rest[0] ?? 0n);
        rest = rest.slice(1).map((value, i) => wrap(value - (rest[i] ?? 0n)));
      }
      return { states, body: rest.map((value) => wrap(value + middle)) };
    }
    case "lookback": {
      const count = 2 ** delta.stateLog;
      const body = latents.slice(count).map((value, i) =>
        wrap(value - (latents[i + count - (lookbacks[i] ?? 0)] ?? 0n) + middle)
      );
      return { states: padded(latents.slice(0, count), count), body };
    }
    case "conv1": {
      const count = delta.weights.length;
      const body = latents.slice(count).map((value, i) => {
        let sum = delta.bias;
        for (const [j, weight] of delta.weights.entries()) sum += BigInt(weight) * (latents[i + j] ?? 0n);
        const predicted = (sum < 0n ? 0n : sum) >> BigInt(delta.quantization);
        return wrap(value - predicted + middle);
      });
      return { states: padded(latents.slice(0, count), count), body };
    }
  }
}

/** Bins that cover all of some numbers, each with at least one, and random weights. */
function chooseBins(values: readonly bigint[], { sizeLog, random }: PcoChoice, areLookbacks: boolean): Bin[] {
  const sorted = [...new Set(values)].sort((a, b) => a < b ? -1 : a > b ? 1 : 0);
  if (sorted.length === 0) return random(2) === 0 ? [] : [{ weight: 1, lower: areLookbacks ? 1n : 0n, offsetBits: 0 }];
  const count = 1 + random(Math.min(sorted.length, 2 ** sizeLog, 20));
  const borders = new Set([0]);
  while (borders.size < count) borders.add(random(sorted.length));
  const starts = [...borders].sort((a, b) => a - b);
  const weights = starts.map(() => 1);
  if (starts.length > 1) {
    for (let left = 2 ** sizeLog - starts.length; left > 0;) {
      const more = 1 + random(left);
      const at = random(starts.length);
      weights[at] = (weights[at] ?? 0) + more;
      left -= more;
    }
  }
  return starts.map((start, i) => {
    const group = sorted.slice(start, starts[i + 1]);
    const lower = group[0] ?? 0n;
    const width = (group.at(-1) ?? lower) - lower;
    return { weight: weights[i] ?? 1, lower, offsetBits: width === 0n ? 0 : width.toString(2).length };
  });
}

interface Step {
  readonly value: bigint;
  readonly width: number;
  readonly bin: Bin;
  readonly offset: bigint;
}

/** What four interleaved decoders read, encoded from the last number to the first, and their initial states. */
function encodeAns(
  values: readonly bigint[],
  bins: readonly Bin[],
  sizeLog: number,
  random: (below: number) => number,
): { readonly first: readonly number[]; readonly steps: readonly Step[] } {
  const size = 2 ** sizeLog;
  let stride = Math.floor(3 * size / 5);
  if (stride % 2 === 0) stride++;
  const slots: number[][] = bins.map(() => []); // the states of each bin, in order
  let step = 0;
  const owners: number[] = [];
  for (const [bin, { weight }] of bins.entries()) {
    for (let i = 0; i < weight; i++) owners[stride * step++ % size] = bin;
  }
  for (let state = 0; state < size; state++) slots[owners[state] ?? 0]?.push(state);
  const states = Array.from({ length: 4 }, () => random(size)); // the decoders' final states are arbitrary
  const steps: Step[] = [];
  for (let i = values.length - 1; i >= 0; i--) {
    const value = values[i] ?? 0n;
    const bin = bins.findIndex(({ lower, offsetBits }) => value >= lower && value - lower < 1n << BigInt(offsetBits));
    const { weight, lower } = bins[bin] ?? { weight: 1, lower: 0n };
    const next = (states[i % 4] ?? 0) + size;
    let width = 0;
    while (next >> width >= 2 * weight) width++;
    steps.unshift({ value: BigInt(next % 2 ** width), width, bin: bins[bin] as Bin, offset: value - lower });
    states[i % 4] = slots[bin]?.[(next >> width) - weight] ?? NaN;
  }
  return { first: states, steps };
}

function writeMode(meta: BitWriter, { mode, bits, family }: PcoChoice, dictionary: readonly bigint[]): void {
  meta.write(["classic", "intMult", "floatMult", "floatQuant", "dict"].indexOf(mode.kind), 4);
  switch (mode.kind) {
    case "classic":
      return;
    case "intMult":
      return meta.write(mode.base, bits);
    case "floatMult":
      return meta.write(ordered(floatBits(mode.base, bits), { family, bits }), bits);
    case "floatQuant":
      return meta.write(mode.bits, 8);
    case "dict":
      meta.write(dictionary.length, 25);
      meta.align();
      for (const value of dictionary) meta.write(value, bits);
  }
}

function writeDelta(meta: BitWriter, { delta, version }: PcoChoice): void {
  if (version < 3) return meta.write(delta.kind === "consecutive" ? delta.order : 0, 3);
  meta.write(["none", "consecutive", "lookback", "conv1"].indexOf(delta.kind), 4);
  switch (delta.kind) {
    case "none":
      return;
    case "consecutive":
      meta.write(delta.order, 3);
      return meta.write(Number(delta.both), 1);
    case "lookback":
      meta.write(delta.windowLog - 1, 5);
      meta.write(delta.stateLog, 4);
      return meta.write(Number(delta.both), 1);
    case "conv1":
      meta.write(delta.quantization, 5);
      meta.write(BigInt.asUintN(64, delta.bias) ^ 1n << 63n, 64);
      meta.write(delta.weights.length - 1, 5);
      for (const weight of delta.weights) meta.write(BigInt.asUintN(32, BigInt(weight)) ^ 1n << 31n, 32);
  }
}
