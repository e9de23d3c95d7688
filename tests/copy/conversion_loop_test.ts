/** Conversion loops, on very many values of every pair of types, against converting one element at a time. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { DType, StridedLayout } from "../../src/layout/mod.ts";
import { bytesOf, conversionOf, type NumberType } from "../../src/copy/conversion.ts";
import { convertHost } from "../../src/copy/host_conversion.ts";
import { pattern } from "../support/arrays.ts";
import { elements, pairsOfTypes, shown } from "../support/numbers.ts";
import { check, fc } from "../support/property.ts";
import { convertedOneByOne } from "../support/scalar_conversion.ts";

/** All bit patterns of up to 16 bits; for larger types arbitrary ones, and boundary values with their neighbours. */
function bitPatterns(type: NumberType, seed: number): Uint8Array<ArrayBuffer> {
  if (!type.isComplex && type.bits <= 16) {
    const all = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i + seed);
    return new Uint8Array(all.buffer);
  }
  const dtype = DType.from(type.name);
  const worthy = fc.sample(elements(type), { numRuns: 700, seed });
  const bytes = pattern((7 * worthy.length + seed % 16) * dtype.itemsize, seed);
  const view = new DataView(bytes.buffer);
  worthy.forEach((value, i) => {
    for (const neighbour of [-1, 0, 1]) {
      const at = (3 * i + neighbour + 1) * dtype.itemsize;
      dtype.write(view, at, value);
      view.setInt32(at, view.getInt32(at, true) + neighbour, true);
    }
  });
  return bytes;
}

test("every loop converts every bit pattern as converting one after the other does", () => {
  for (const pair of pairsOfTypes) {
    const { from, to } = pair;
    const conversion = conversionOf(DType.from(from.name), DType.from(to.name));
    if (conversion === null) continue;
    check(
      fc.property(fc.nat(), (seed) => {
        const source = bitPatterns(from, seed);
        const count = source.length / bytesOf(from);
        const expected = convertedOneByOne(source, conversion);
        const side = (bytes: Uint8Array<ArrayBuffer>, type: NumberType) => ({
          ...{ bytes, offset: 0, layout: StridedLayout.dense([count], bytesOf(type)) },
        });
        const [read, written] = [DType.from(from.name), DType.from(to.name)];
        for (const natively of [true, false]) {
          const result = pattern(expected.length, seed);
          convertHost(side(source, from), side(result, to), conversion, natively);
          const differences: string[] = [];
          for (let at = 0; at < result.length && differences.length < 10; at++) {
            if (result[at] === expected[at]) continue;
            const index = Math.floor(at / bytesOf(to));
            const [one, other] = [result, expected]
              .map(({ buffer }) => shown(written.read(new DataView(buffer), index * bytesOf(to))));
            if (one === other) continue; // the NaN's bits are unspecified
            const value = shown(read.read(new DataView(source.buffer), index * bytesOf(from)));
            differences.push(`${from.name} ${value} became ${to.name} ${one}, not ${other}`);
          }
          assertEquals(differences, [], natively ? "natively" : "by WebAssembly");
        }
      }),
      1,
    );
  }
});

test("doubles that are all small become the same 64-bit integers as next to a large one", () => {
  const near = [0.5, 1.5, 2.5, 2 ** 31, 2 ** 32 + 0.5, 2 ** 50 + 0.75, 2 ** 51 - 0.5, 2 ** 51 - 1];
  const small = fc.oneof(
    fc.constantFrom(0, -0, ...near, ...near.map((value) => -value)),
    fc.double({ min: -(2 ** 51), max: 2 ** 51, maxExcluded: true, noNaN: true }),
  );
  const positive = small.map(Math.abs);
  const other = fc.constantFrom(
    NaN,
    -1,
    2 ** 51,
    2 ** 52 + 1,
    -(2 ** 51),
    -(2 ** 53),
    2 ** 62,
    2 ** 63,
    1e300,
    -Infinity,
  );
  const turns = { minLength: 32, maxLength: 48 };
  for (const to of ["int64", "uint64"]) {
    const conversion = conversionOf(DType.from("float64"), DType.from(to));
    if (conversion === null) throw new Error("nothing is converted");
    check(
      fc.property(
        fc.oneof(fc.array(small, turns), fc.array(positive, turns)),
        fc.option(fc.tuple(fc.nat(31), other)),
        (values, odd) => {
          if (odd !== null) values[odd[0]] = odd[1];
          const source = new Uint8Array(Float64Array.from(values).buffer);
          const result = new Uint8Array(new ArrayBuffer(source.length));
          const layout = StridedLayout.dense([values.length], 8);
          convertHost({ bytes: source, offset: 0, layout }, { bytes: result, offset: 0, layout }, conversion);
          assertEquals(result, convertedOneByOne(source, conversion));
        },
      ),
      500,
    );
  }
});
