/**
 * Reads floats from registers, and writes them with the NaN that GPUs produce.
 *
 * @module
 */
import type { InstructionReader } from "./operands.ts";
import { bfloat16, binary16, binary32, type Rounding, roundTo, type SmallFormat } from "./rounding.ts";
import type { ScalarType } from "./types.ts";

const bits = new DataView(new ArrayBuffer(8));

/** Decodes a 16-bit float. */
export function decode16(format: SmallFormat, code: number): number {
  if (format === bfloat16) {
    bits.setUint32(0, code << 16);
    return bits.getFloat32(0);
  }
  const sign = code & 0x8000 ? -1 : 1;
  const field = (code >>> 10) & 0x1f;
  const fraction = code & 0x3ff;
  if (field === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (field === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (field - 25));
}

/** Encodes a number that the 16-bit format represents exactly; NaN becomes 0x7fff, as on GPUs. */
export function encode16(format: SmallFormat, value: number): number {
  if (Number.isNaN(value)) return 0x7fff;
  bits.setFloat32(0, value);
  const word = bits.getUint32(0);
  if (format === bfloat16) return word >>> 16;
  const sign = (word >>> 16) & 0x8000;
  const size = Math.abs(value);
  if (size === Infinity) return sign | 0x7c00;
  // Exact: the significand has at most 11 bits.
  if (size < 2 ** -14) return sign | (size * 2 ** 24);
  return sign | (((word >>> 13) & 0x3ffff) - (112 << 10));
}

/** How numbers of one format are read, rounded and written. */
export interface FloatCodec {
  readonly bits: 16 | 32 | 64;
  /** Null for binary64. */
  readonly format: SmallFormat | null;
  /** Reads a number exactly. */
  read(r: DataView, slot: number): number;
  /** Writes a number that the format represents exactly. */
  write(r: DataView, slot: number, value: number): void;
  /** Rounds a double that is exact or rounded to odd; for binary64 it already is the result. */
  round(value: number, rounding: Rounding): number;
}

/** The NaN that binary32 instructions produce. */
export const NAN32 = 0x7fffffff;
/** The upper word of the NaN that binary64 instructions produce. */
const NAN64_UPPER = 0xfff80000;

function codec16(format: SmallFormat): FloatCodec {
  return {
    bits: 16,
    format,
    read: (r, slot) => decode16(format, r.getUint16(slot, true)),
    write: (r, slot, value) => r.setInt32(slot, encode16(format, value), true),
    round: (value, rounding) => roundTo(format, value, rounding),
  };
}

/** Codecs by type name. */
export const codecs: {
  readonly f16: FloatCodec;
  readonly bf16: FloatCodec;
  readonly f32: FloatCodec;
  readonly f64: FloatCodec;
} = {
  f16: codec16(binary16),
  bf16: codec16(bfloat16),
  f32: {
    bits: 32,
    format: binary32,
    read: (r, slot) => r.getFloat32(slot, true),
    write: (r, slot, value) => {
      if (Number.isNaN(value)) r.setInt32(slot, NAN32, true);
      else r.setFloat32(slot, value, true);
    },
    round: (value, rounding) => roundTo(binary32, value, rounding),
  },
  f64: {
    bits: 64,
    format: null,
    read: (r, slot) => r.getFloat64(slot, true),
    write: (r, slot, value) => {
      if (!Number.isNaN(value)) return r.setFloat64(slot, value, true);
      r.setInt32(slot, 0, true);
      r.setUint32(slot + 4, NAN64_UPPER, true);
    },
    round: (value) => value,
  },
};

/**
 * Flushes a subnormal number to zero of the same sign; returns any other number unchanged.
 *
 * @param least the smallest normal number, by default that of binary32
 */
export function flush(value: number, least: number = 2 ** -126): number {
  return Math.abs(value) < least ? value * 0 : value;
}

/** Clamps to [0, 1]; NaN becomes 0. */
export function saturate(value: number): number {
  return value > 0 ? Math.min(value, 1) : 0;
}

/** Whether a number has its sign bit set. */
export function isNegative(value: number): boolean {
  return value < 0 || Object.is(value, -0);
}

/** The codec of a type, and how many numbers a register of it holds. */
export function codecOf(
  reader: InstructionReader,
  type: ScalarType,
): { readonly codec: FloatCodec; readonly lanes: number } {
  switch (type.name) {
    case "f16":
    case "bf16":
    case "f32":
    case "f64":
      return { codec: codecs[type.name], lanes: 1 };
    case "f16x2":
      return { codec: codecs.f16, lanes: 2 };
    case "bf16x2":
      return { codec: codecs.bf16, lanes: 2 };
  }
  return reader.fail(`the type .${type.name} is not understood here`);
}
