/**
 * The metadata before the pages: the format version, and how a chunk's numbers were split into variables.
 *
 * @module
 */
import type { Fail } from "../../error.ts";
import { type AnsTable, type LatentBits, readAnsTable } from "./ans_table.ts";
import { BitReader } from "./bit_reader.ts";

/** The number types that pco compresses. */
export type PcoType = "u16" | "u32" | "u64" | "i16" | "i32" | "i64" | "f16" | "f32" | "f64";

/** How one or two variables combine into a number. */
export type PcoMode =
  | { readonly kind: "classic" }
  /** number = first * base + second; the base is two words. */
  | { readonly kind: "intMult"; readonly low: number; readonly high: number }
  /** number = first * base, plus `second` units in the last place. */
  | { readonly kind: "floatMult"; readonly base: number }
  /** The second variable holds the bits that the first does not. */
  | { readonly kind: "floatQuant"; readonly bits: number }
  | { readonly kind: "dict"; readonly low: Int32Array; readonly high: Int32Array };

/** How a variable's numbers were turned into differences. */
export type PcoDelta =
  | { readonly kind: "none"; readonly states: 0 }
  | { readonly kind: "consecutive"; readonly states: number }
  | { readonly kind: "lookback"; readonly states: number; readonly window: number }
  | { readonly kind: "conv1"; readonly states: number; readonly convolution: Convolution };

/** The prediction of a number from those before it. */
export interface Convolution {
  /** The right shift of the weighted sum, in bits. */
  readonly quantization: number;
  readonly bias: bigint;
  /** Signed; the weight of the oldest number comes first. */
  readonly weights: Int32Array;
}

/** A variable and its delta encoding. */
export interface PcoVariable {
  readonly table: AnsTable;
  readonly delta: PcoDelta;
}

/** The metadata that a chunk's pages share. */
export interface PcoChunk {
  readonly type: PcoType;
  readonly mode: PcoMode;
  /** The distances to look back, with `lookback`. */
  readonly lookbacks: AnsTable | null;
  readonly first: PcoVariable;
  readonly second: PcoVariable | null;
}

const none: PcoDelta = { kind: "none", states: 0 };

/** The bit width of a number. */
export function bitsOf(type: PcoType): LatentBits {
  return type.endsWith("16") ? 16 : type.endsWith("32") ? 32 : 64;
}

/** The number of stored mantissa bits of a float, by its bit width. */
const mantissaBits = { 16: 10, 32: 23, 64: 52 } as const;

// law vortex/compressed/readPcoHeader: vortex/compressed/pco, vortex/compressed/malformed
/** @returns the major version: 0 to 3 are a single byte, 4 is followed by a minor version */
export function readPcoHeader(header: Uint8Array, fail: Fail): number {
  const [major = -1] = header;
  if (header.length < 1 || (major > 3 && header.length < 2)) fail(`a header of ${header.length} bytes`);
  if (major > 4) fail(`version ${major} of the pco format, expected 0 to 4`);
  return major;
}

/** Reads a chunk's metadata. */
export function readPcoChunk(bytes: Uint8Array, type: PcoType, version: number, fail: Fail): PcoChunk {
  const reader = new BitReader(bytes, "the metadata of a pco chunk", fail);
  const bits = bitsOf(type);
  const mode = readMode(reader, type, version, fail);
  const [first, second, hasLookbacks] = readDelta(reader, version, fail);
  const lookbacks = hasLookbacks ? readAnsTable(reader, 32, fail) : null;
  const hasSecond = mode.kind !== "classic" && mode.kind !== "dict";
  const chunk = {
    type,
    mode,
    lookbacks,
    first: { delta: first, table: readAnsTable(reader, mode.kind === "dict" ? 32 : bits, fail) },
    second: hasSecond ? { delta: second, table: readAnsTable(reader, bits, fail) } : null,
  };
  reader.align();
  return chunk;
}

function readMode(reader: BitReader, type: PcoType, version: number, fail: Fail): PcoMode {
  const bits = bitsOf(type);
  const isFloat = type.startsWith("f");
  const value = reader.read(4);
  // law vortex/compressed/readMode: vortex/compressed/pco, vortex/compressed/malformed
  switch (value) {
    case 0:
      return { kind: "classic" };
    case 1: {
      if (version === 0) fail("IntMult in version 0 of the pco format, which wrote it differently");
      if (isFloat) fail(`mode IntMult of ${type}, expected integers`);
      const [low, high] = reader.readWords(bits);
      if (low === 0 && high === 0) fail("mode IntMult with a base of 0");
      return { kind: "intMult", low, high };
    }
    case 2: {
      if (!isFloat) fail(`mode FloatMult of ${type}, expected floats`);
      const base = floatOf(...reader.readWords(bits), bits);
      if (!Number.isFinite(base) || base === 0) fail(`mode FloatMult with a base of ${base}`);
      return { kind: "floatMult", base };
    }
    case 3: {
      if (!isFloat) fail(`mode FloatQuant of ${type}, expected floats`);
      const quantized = reader.read(8);
      if (quantized < 1 || quantized > mantissaBits[bits]) {
        fail(`mode FloatQuant with ${quantized} bits, expected 1 to ${mantissaBits[bits]} of ${type}`);
      }
      return { kind: "floatQuant", bits: quantized };
    }
    case 4: {
      const count = reader.read(25);
      reader.align();
      if (count * bits > reader.left) fail(`a dictionary of ${count} numbers in ${reader.left / 8} bytes`);
      const low = new Int32Array(count);
      const high = new Int32Array(bits === 64 ? count : 0);
      for (let i = 0; i < count; i++) [low[i], high[i]] = reader.readWords(bits); // `high` is empty unless 64 bits
      return { kind: "dict", low, high };
    }
    default:
      return fail(`mode ${value} of a pco chunk, expected 0 to 4`);
  }
}

/** A float from its ordered bits: the sign is inverted, and for negative floats all bits are. */
function floatOf(low: number, high: number, bits: LatentBits): number {
  const view = new DataView(new ArrayBuffer(8));
  const isPositive = (bits === 64 ? high : low << (32 - bits)) < 0 || (bits === 64 && high >= 0x8000_0000);
  const inverted = isPositive ? 0 : -1;
  const top = isPositive ? bits === 16 ? 0x8000 : 0x8000_0000 : 0;
  if (bits === 64) {
    view.setInt32(0, low ^ inverted, true);
    view.setInt32(4, high ^ inverted ^ top, true);
    return view.getFloat64(0, true);
  }
  view.setInt32(0, low ^ inverted ^ top, true);
  return bits === 32 ? view.getFloat32(0, true) : view.getFloat16(0, true);
}

function readDelta(
  reader: BitReader,
  version: number,
  fail: Fail,
): readonly [first: PcoDelta, second: PcoDelta, hasLookbacks: boolean] {
  if (version < 3) {
    const states = reader.read(3);
    return [states === 0 ? none : { kind: "consecutive", states }, none, false];
  }
  const value = reader.read(4);
  // law vortex/compressed/readDelta: vortex/compressed/pco, vortex/compressed/malformed
  switch (value) {
    case 0:
      return [none, none, false];
    case 1: {
      const states = reader.read(3);
      if (states === 0) fail("consecutive differences of order 0, expected 1 to 7");
      const delta: PcoDelta = { kind: "consecutive", states };
      return [delta, reader.read(1) === 1 ? delta : none, false];
    }
    case 2: {
      const windowLog = reader.read(5) + 1;
      const statesLog = reader.read(4);
      if (statesLog > windowLog) fail(`2^${statesLog} numbers before a window of 2^${windowLog}`);
      const delta: PcoDelta = { kind: "lookback", states: 2 ** statesLog, window: 2 ** windowLog };
      return [delta, reader.read(1) === 1 ? delta : none, true];
    }
    case 3: {
      const quantization = reader.read(5);
      const [low, high] = reader.readWords(64);
      const bias = BigInt.asIntN(64, (BigInt(high) << 32n | BigInt(low)) ^ 1n << 63n);
      const weights = new Int32Array(reader.read(5) + 1);
      for (let i = 0; i < weights.length; i++) weights[i] = reader.read(32) ^ 0x8000_0000;
      const convolution = { quantization, bias, weights };
      return [{ kind: "conv1", states: weights.length, convolution }, none, false];
    }
    default:
      return fail(`differences of kind ${value} in a pco chunk, expected 0 to 3`);
  }
}
