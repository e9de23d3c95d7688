/**
 * Loops that produce words: read plain or unpacked from fewer bits, with steps applied on the way.
 *
 * A column of numbers is usually encoded two or three times over, `alp(zigzag(bitpacked))`. Decoded one by one, each
 * encoding would read and write the whole column; here one loop is generated for the whole chain, so that a word is
 * loaded, unpacked, shifted, converted and stored once. Each chain's loop is generated on first use.
 *
 * @module
 */
import { compile, type Instruction, type WasmFunction } from "../../wasm/mod.ts";
import { firstOfRow } from "./fastlanes.ts";
import type { Bits } from "./words.ts";

/** An operation applied to each word, in decoding order. */
export type Step =
  /** Adds the reference, wrapping. */
  | { readonly kind: "add"; readonly reference: bigint }
  /** Unsigned to signed: 0, -1, 1, -2 and so on. */
  | { readonly kind: "zigzag" }
  /** Converts a signed integer to a float and multiplies it twice, rounding each time. 32 or 64 bits. */
  | { readonly kind: "alp"; readonly factors: readonly [number, number] };

/** How the words are read: plain, or from blocks of 1024 packed at a width from 0 to all their bits. */
export type Source = "plain" | number;

/** A loop from an input to an output address. A turn is one block, or 64 bytes of plain words. */
export type Kernel = (input: number, output: number, turns: number) => void;

/** Bytes reserved for the steps' parameters at the start of the scratch memory, 16 per step. */
export const PARAMETER_BYTES = 128;

const kernels = new Map<string, Kernel>();

/** The loop for a chain, compiled once. */
export function kernelOf(bits: Bits, source: Source, steps: readonly Step[]): Kernel {
  const key = `${bits} ${source} ${steps.map(({ kind }) => kind)}`;
  return kernels.getOrInsertComputed(
    key,
    () => compile(source === "plain" ? plain(bits, steps) : unpack(bits, source, steps)),
  );
}

/** Writes the steps' parameters to where the loops read them. */
export function setParameters(memory: Uint8Array, bits: Bits, steps: readonly Step[]): void {
  const view = new DataView(memory.buffer);
  for (const [index, step] of steps.entries()) {
    const address = 16 * index;
    if (step.kind === "add") view.setBigInt64(address, BigInt.asIntN(64, step.reference), true);
    if (step.kind !== "alp") continue;
    for (const [which, factor] of step.factors.entries()) {
      if (bits === 64) view.setFloat64(address + 8 * which, factor, true);
      else view.setFloat32(address + 8 * which, factor, true);
    }
  }
}

// Locals of every loop, followed by one vector for each parameter of each step.
const INPUT = 0;
const OUTPUT = 1;
const TURNS = 2;
const GROUP = 3;
const CURRENT = 4;
const NEXT = 5;
const FIRST_PARAMETER = 6;

const shapes = { 8: "i8x16", 16: "i16x8", 32: "i32x4", 64: "i64x2" } as const;
const splats = {
  8: "v128.load8_splat",
  16: "v128.load16_splat",
  32: "v128.load32_splat",
  64: "v128.load64_splat",
} as const;

// law vortex/numeric.unpack: vortex/numeric/unpack
/**
 * A block of 1024 words has 1024 / bits lanes, each a stream of `bits` rows of `width` bits, low bits first. The
 * streams' words are interleaved, so a vector holds one word from each of 16 / (bits / 8) lanes, and eight vectors
 * cover all lanes: for every word size, the k-th words of all lanes take 128 bytes.
 */
function unpack(bits: Bits, width: number, steps: readonly Step[]): WasmFunction {
  const rows: Instruction[] = [];
  for (let row = 0; row < bits; row++) {
    const shift = (row * width) % bits;
    const word = Math.floor((row * width) / bits);
    rows.push(["local.get", OUTPUT]);
    if (width === 0) rows.push(["v128.const", 0n, 0n]);
    else {
      if (shift === 0) rows.push(["local.get", INPUT], ["v128.load", 128 * word], ["local.set", CURRENT]);
      rows.push(["local.get", CURRENT], ...shifted(bits, "shr_u", shift));
      if (shift + width > bits) {
        const high = bits - shift;
        rows.push(...mask(bits, high, bits === 8), ["local.get", INPUT], ["v128.load", 128 * (word + 1)]);
        rows.push(["local.tee", NEXT], ...shifted(bits, "shl", high), ...maskFrom(bits, high, width), ["v128.or"]);
        rows.push(["local.get", NEXT], ["local.set", CURRENT]);
      } else rows.push(...mask(bits, width, shift + width < bits || (bits === 8 && shift > 0)));
    }
    rows.push(...applied(bits, steps), ["v128.store", firstOfRow(row) * bits / 8]);
  }
  return looped(bits, steps, [
    ["i32.const", 8],
    ["local.set", GROUP],
    ["loop"],
    ...rows,
    ...advance(INPUT, 16),
    ...advance(OUTPUT, 16),
    ...countdown(GROUP),
    ["end"],
    ...advance(INPUT, 128 * width - 128),
    ...advance(OUTPUT, 128 * bits - 128),
  ]);
}

/** Four vectors per turn. */
function plain(bits: Bits, steps: readonly Step[]): WasmFunction {
  const vectors = [0, 16, 32, 48].flatMap((offset): Instruction[] => [
    ["local.get", OUTPUT],
    ["local.get", INPUT],
    ["v128.load", offset],
    ...applied(bits, steps),
    ["v128.store", offset],
  ]);
  return looped(bits, steps, [...vectors, ...advance(INPUT, 64), ...advance(OUTPUT, 64)]);
}

function looped(bits: Bits, steps: readonly Step[], turn: readonly Instruction[]): WasmFunction {
  const loads = steps.flatMap((step, index): Instruction[] =>
    parametersOf(step, index).flatMap((local, which): Instruction[] => [
      ["i32.const", 16 * index + 8 * which],
      [splats[bits], 0],
      ["local.set", local],
    ])
  );
  return {
    parameters: 3,
    locals: ["i32", "v128", "v128", ...steps.flatMap(() => ["v128", "v128"] as const)],
    body: [...loads, ["loop"], ...turn, ...countdown(TURNS), ["end"]],
  };
}

/** The locals that hold a step's parameters. */
function parametersOf({ kind }: Step, index: number): number[] {
  const first = FIRST_PARAMETER + 2 * index;
  return kind === "add" ? [first] : kind === "alp" ? [first, first + 1] : [];
}

// law vortex/numeric.steps: vortex/numeric/steps
/** Applies the steps to the vector on the stack. */
function applied(bits: Bits, steps: readonly Step[]): Instruction[] {
  return steps.flatMap((step, index): Instruction[] => {
    const [first = 0, second = 0] = parametersOf(step, index);
    switch (step.kind) {
      case "add":
        return [["local.get", first], [`${shapes[bits]}.add`]];
      case "zigzag": // half of it, with all bits inverted if it is odd: 0 - 1 has all bits set
        return [
          ["local.tee", NEXT],
          ...shifted(bits, "shr_u", 1),
          ...mask(bits, bits - 1, bits === 8),
          ["local.get", NEXT],
          ...mask(bits, 1, true),
          [`${shapes[bits]}.neg`],
          ["v128.xor"],
        ];
      case "alp": {
        const float = bits === 64 ? "f64x2" : "f32x4";
        const converted: Instruction[] = bits === 64 ? toFloat64() : [["f32x4.convert_i32x4_s"]];
        return [...converted, ["local.get", first], [`${float}.mul`], ["local.get", second], [`${float}.mul`]];
      }
    }
  });
}

/**
 * Signed 64-bit integers to floats, for which there is no instruction: each half becomes the mantissa of a float whose
 * exponent gives it its weight, 2^84 for the upper half, biased to be unsigned, and 2^52 for the lower half.
 * Subtracting both exponents and the bias from the upper float is exact, so the sum is rounded once.
 */
function toFloat64(): Instruction[] {
  const splat = (value: bigint): Instruction => ["v128.const", value, value];
  return [
    ["local.tee", NEXT],
    ["i32.const", 32],
    ["i64x2.shr_u"],
    splat(0x4530_0000_8000_0000n),
    ["v128.xor"],
    splat(0x4530_0000_8010_0000n),
    ["f64x2.sub"],
    ["local.get", NEXT],
    splat(0xffff_ffffn),
    ["v128.and"],
    splat(0x4330_0000_0000_0000n),
    ["v128.or"],
    ["f64x2.add"],
  ];
}

/** Shifts words; bytes as halves of 16-bit words, as CPUs have no byte shifts: the neighbour's bits get masked off. */
function shifted(bits: Bits, direction: "shl" | "shr_u", by: number): Instruction[] {
  return by === 0 ? [] : [["i32.const", by], [`${shapes[bits === 8 ? 16 : bits]}.${direction}`]];
}

/** Keeps the low bits of each word, if that changes anything. */
function mask(bits: Bits, low: number, changes: boolean): Instruction[] {
  return changes ? maskFrom(bits, 0, low) : [];
}

/** Keeps bits `from` to `to` of each word. */
function maskFrom(bits: Bits, from: number, to: number): Instruction[] {
  let word = (1n << BigInt(to)) - (1n << BigInt(from));
  for (let filled: number = bits; filled < 64; filled *= 2) word |= word << BigInt(filled);
  return [["v128.const", word, word], ["v128.and"]];
}

function advance(local: number, by: number): Instruction[] {
  return [["local.get", local], ["i32.const", by], ["i32.add"], ["local.set", local]];
}

/** Decrements the count, and repeats the innermost loop until it is 0. */
function countdown(local: number): Instruction[] {
  return [["local.get", local], ["i32.const", 1], ["i32.sub"], ["local.tee", local], ["br_if", 0]];
}
