/**
 * Reads and writes one scalar in host memory, for every kind of scalar.
 *
 * All memory is little-endian, as on every machine that the runtimes support, and as DLPack packs bits.
 */
import type { FloatCodec } from "./minifloat.ts";
import { show } from "./show.ts";

/** A complex number. */
export interface Complex {
  /** Real part. */
  readonly re: number;
  /** Imaginary part. */
  readonly im: number;
}

/** A scalar in JavaScript: bigint for 64-bit integers and handles, number for all others, boolean, Complex. */
export type Scalar = number | bigint | boolean | Complex;

/** Reads and writes scalars of one kind. */
export interface ScalarCodec {
  /** Reads the scalar at a byte offset; a fraction of a byte, in eighths, for scalars that begin inside one. */
  read(view: DataView, byteOffset: number): Scalar;
  /**
   * Writes the scalar at a byte offset, and leaves the adjacent bits unchanged.
   *
   * @throws {TypeError} if the value is of another type
   * @throws {RangeError} if an integer is out of range, or NaN has no code
   */
  write(view: DataView, byteOffset: number, value: Scalar): void;
}

const LITTLE_ENDIAN = true;

/** Reads the bits of a code of at most 8 bits that may begin anywhere, lowest bit first. */
function readBits(view: DataView, byteOffset: number, bits: number): number {
  const byte = Math.floor(byteOffset);
  const shift = (byteOffset - byte) * 8;
  const low = view.getUint8(byte);
  const both = shift + bits > 8 ? low | (view.getUint8(byte + 1) << 8) : low;
  return (both >>> shift) & ((1 << bits) - 1);
}

/** Writes the bits of a code of at most 8 bits that may begin anywhere, lowest bit first. */
function writeBits(view: DataView, byteOffset: number, bits: number, code: number): void {
  const byte = Math.floor(byteOffset);
  const shift = (byteOffset - byte) * 8;
  const mask = ((1 << bits) - 1) << shift;
  const placed = code << shift;
  view.setUint8(byte, (view.getUint8(byte) & ~mask) | placed);
  if (shift + bits > 8) view.setUint8(byte + 1, (view.getUint8(byte + 1) & ~(mask >>> 8)) | (placed >>> 8));
}

/** The width of a scalar's code. */
type CodeSize = { readonly bits: number };

function readCode(view: DataView, byteOffset: number, { bits }: CodeSize): number {
  return bits === 16 ? view.getUint16(byteOffset, LITTLE_ENDIAN) : readBits(view, byteOffset, bits);
}

function writeCode(view: DataView, byteOffset: number, { bits }: CodeSize, code: number): void {
  if (bits === 16) view.setUint16(byteOffset, code, LITTLE_ENDIAN);
  else writeBits(view, byteOffset, bits, code);
}

function expected(what: string, name: string, value: unknown): TypeError {
  return new TypeError(`Expected ${what} for ${name}, got ${show(value)}`);
}

/** Whether integers are signed, as their names say it. */
export type IntegerKind = "int" | "uint";

/** Integers of up to 32 bits. */
export function integerCodec(kind: IntegerKind, bits: number): ScalarCodec {
  const name = `${kind}${bits}`;
  const isSigned = kind === "int";
  const min = isSigned ? -(2 ** (bits - 1)) : 0;
  const max = isSigned ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  const check = (value: Scalar): number => {
    if (typeof value !== "number") throw expected("a number", name, value);
    if (!(Number.isInteger(value) && value >= min && value <= max)) {
      throw new RangeError(`Expected an integer from ${min} to ${max} for ${name}, got ${value}`);
    }
    return value;
  };
  if (bits === 32) {
    return isSigned
      ? {
        read: (view, at) => view.getInt32(at, LITTLE_ENDIAN),
        write: (view, at, value) => view.setInt32(at, check(value), LITTLE_ENDIAN),
      }
      : {
        read: (view, at) => view.getUint32(at, LITTLE_ENDIAN),
        write: (view, at, value) => view.setUint32(at, check(value), LITTLE_ENDIAN),
      };
  }
  const size: CodeSize = { bits };
  const count = 2 ** bits;
  return {
    read(view, byteOffset) {
      const code = readCode(view, byteOffset, size);
      return code > max ? code - count : code;
    },
    write(view, byteOffset, value) {
      const whole = check(value);
      writeCode(view, byteOffset, size, whole < 0 ? whole + count : whole);
    },
  };
}

/** Integers of 64 bits. Writes safe integers, too. */
export function bigintCodec(kind: IntegerKind, name: string): ScalarCodec {
  const isSigned = kind === "int";
  const min = isSigned ? -(2n ** 63n) : 0n;
  const max = isSigned ? 2n ** 63n - 1n : 2n ** 64n - 1n;
  return {
    read: (view, byteOffset) =>
      isSigned ? view.getBigInt64(byteOffset, LITTLE_ENDIAN) : view.getBigUint64(byteOffset, LITTLE_ENDIAN),
    write(view, byteOffset, value) {
      if (typeof value !== "bigint" && typeof value !== "number") throw expected("a bigint", name, value);
      if (typeof value === "number" && !Number.isSafeInteger(value)) {
        throw new RangeError(`Expected a bigint or an integer up to 2^53 - 1 for ${name}, got ${value}`);
      }
      const whole = BigInt(value);
      if (whole < min || whole > max) {
        throw new RangeError(`Expected an integer from ${min} to ${max} for ${name}, got ${show(value)}`);
      }
      if (isSigned) view.setBigInt64(byteOffset, whole, LITTLE_ENDIAN);
      else view.setBigUint64(byteOffset, whole, LITTLE_ENDIAN);
    },
  };
}

/** Floats of 32 and 64 bits. */
export function floatCodec(name: string, bits: number): ScalarCodec {
  return {
    read: (view, byteOffset) =>
      bits === 32 ? view.getFloat32(byteOffset, LITTLE_ENDIAN) : view.getFloat64(byteOffset, LITTLE_ENDIAN),
    write(view, byteOffset, value) {
      if (typeof value !== "number") throw expected("a number", name, value);
      if (bits === 32) view.setFloat32(byteOffset, value, LITTLE_ENDIAN);
      else view.setFloat64(byteOffset, value, LITTLE_ENDIAN);
    },
  };
}

/** Floats of up to 16 bits. */
export function minifloatCodec(name: string, bits: number, codec: FloatCodec): ScalarCodec {
  const size: CodeSize = { bits };
  return {
    read: (view, byteOffset) => codec.decode(readCode(view, byteOffset, size)),
    write(view, byteOffset, value) {
      if (typeof value !== "number") throw expected("a number", name, value);
      writeCode(view, byteOffset, size, codec.encode(value));
    },
  };
}

/** Truth values: every code but 0 is true. */
export function booleanCodec(name: string, bits: number): ScalarCodec {
  const size: CodeSize = { bits };
  return {
    read: (view, byteOffset) => readCode(view, byteOffset, size) !== 0,
    write(view, byteOffset, value) {
      if (typeof value !== "boolean") throw expected("a boolean", name, value);
      writeCode(view, byteOffset, size, value ? 1 : 0);
    },
  };
}

// law layout/complexCodec: layout/dtype
/** Pairs of floats, real part first. */
export function complexCodec(name: string, part: ScalarCodec, partSize: number): ScalarCodec {
  return {
    read(view, byteOffset) {
      return { re: Number(part.read(view, byteOffset)), im: Number(part.read(view, byteOffset + partSize)) };
    },
    write(view, byteOffset, value) {
      if (typeof value === "number") {
        part.write(view, byteOffset, value);
        part.write(view, byteOffset + partSize, 0);
        return;
      }
      if (typeof value !== "object" || value === null) throw expected("{ re, im } or a number", name, value);
      const { re, im } = value; // both at once: they may be code that throws
      if (typeof re !== "number" || typeof im !== "number") throw expected("{ re, im } or a number", name, value);
      part.write(view, byteOffset, re);
      part.write(view, byteOffset + partSize, im);
    },
  };
}
