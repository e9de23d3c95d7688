/**
 * Every C scalar: its values, with frequent boundary values.
 *
 * @module
 */
import type { CScalar } from "../../bindings/abi.ts";
import { fc } from "../support/property.ts";

/** All scalar words of `abi.ts`. */
export const scalars: readonly CScalar[] = [
  "i8",
  "u8",
  "i16",
  "u16",
  "i32",
  "u32",
  "i64",
  "u64",
  "f32",
  "f64",
  "size",
  "ptr",
];

/** The C type of each scalar. */
export const cTypes: { readonly [S in CScalar]: string } = {
  i8: "int8_t",
  u8: "uint8_t",
  i16: "int16_t",
  u16: "uint16_t",
  i32: "int32_t",
  u32: "uint32_t",
  i64: "int64_t",
  u64: "uint64_t",
  f32: "float",
  f64: "double",
  size: "size_t",
  ptr: "void *",
};

function integers(min: number, max: number): fc.Arbitrary<number> {
  const middle = Math.floor(max / 2);
  const borders = [min, min + 1, -5, -1, 0, 1, middle, middle + 1, max - 1, max].filter((n) => n >= min);
  return fc.oneof(fc.constantFrom(...borders), fc.integer({ min, max }));
}

function bigIntegers(min: bigint, max: bigint): fc.Arbitrary<bigint> {
  const safe = 2n ** 53n;
  const borders = [min, min + 1n, -safe, -5n, -1n, 0n, 1n, safe - 1n, safe, safe + 1n, max / 2n, max / 2n + 1n, max];
  return fc.oneof(fc.constantFrom(...borders.filter((n) => n >= min)), fc.bigInt({ min, max }));
}

const unsigned64 = bigIntegers(0n, 2n ** 64n - 1n);

/** The values of each scalar as an argument or result. fast-check's floats include NaN, -0 and the infinities. */
export const values: { readonly [S in CScalar]: fc.Arbitrary<number | bigint> } = {
  i8: integers(-(2 ** 7), 2 ** 7 - 1),
  u8: integers(0, 2 ** 8 - 1),
  i16: integers(-(2 ** 15), 2 ** 15 - 1),
  u16: integers(0, 2 ** 16 - 1),
  i32: integers(-(2 ** 31), 2 ** 31 - 1),
  u32: integers(0, 2 ** 32 - 1),
  i64: bigIntegers(-(2n ** 63n), 2n ** 63n - 1n),
  u64: unsigned64,
  size: unsigned64,
  ptr: unsigned64,
  f32: fc.oneof(fc.constantFrom(NaN, -0, Infinity, -Infinity), fc.float()),
  f64: fc.oneof(fc.constantFrom(NaN, -0, Infinity, -Infinity, Number.MIN_VALUE), fc.double()),
};
