/**
 * Arrays of few shapes in sequence: each is imported as it is, not as an earlier one, wherever its numbers lie.
 */
import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { ExchangeError, StridedMemoryView } from "../../mod.ts";
import { cachedLayout, cacheLayout } from "../../src/layout/layout_cache.ts";
import { MAP, PROT } from "../../bindings/libc.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { StridedLayout } from "../../src/layout/mod.ts";
import { check, fc, scaled } from "../support/property.ts";
import { GuardedMemory } from "../support/guarded_memory.ts";
import { structBytes, writeRaw } from "../support/raw_dlpack.ts";

/** An array as any protocol may describe it: from few numbers, so that many differ in only one. */
interface Description {
  readonly shape: number[];
  readonly strides: number[] | null;
  readonly itemsize: number;
  /** Where the numbers lie: far apart, or in either order with `between` bytes in between. */
  readonly place: "apart" | "shape first" | "strides first";
  readonly between: number;
  /** Bytes behind the last number that are still readable. */
  readonly behind: number;
}

const arrays = fc.integer({ min: 0, max: 3 }).chain((ndim): fc.Arbitrary<Description> => {
  const numbers = (...from: number[]) => fc.array(fc.constantFrom(...from), { minLength: ndim, maxLength: ndim });
  return fc.record({
    shape: numbers(1, 2, 3),
    strides: fc.option(numbers(0, 1, 2, 6)),
    itemsize: fc.constantFrom(4, 8),
    place: fc.constantFrom("apart" as const, "shape first" as const, "strides first" as const),
    between: fc.constantFrom(0, 8, 64, 1000, 4096),
    behind: fc.constantFrom(0, 8, 4000),
  });
});

const memory = new GuardedMemory();
const elements = memory.bytes(4096).address;

/** The struct of a tensor, with its numbers where the description places them. */
function tensorOf({ shape, strides, itemsize, place, between, behind }: Description): bigint {
  const size = 8 * shape.length;
  let [shapeAt, stridesAt] = [0n, 0n];
  if (place === "apart") {
    shapeAt = memory.bytes(size + behind).address;
    stridesAt = memory.bytes(size + behind).address;
  } else {
    const first = memory.bytes(2 * size + between + behind).address;
    const second = first + BigInt(size + between);
    [shapeAt, stridesAt] = place === "shape first" ? [first, second] : [second, first];
  }
  const write = (at: bigint, numbers: readonly number[]) => {
    if (numbers.length === 0) return;
    const bytes = new DataView(ffiPort().memory(at, 8 * numbers.length));
    numbers.forEach((value, i) => bytes.setBigInt64(8 * i, BigInt(value), true));
  };
  write(shapeAt, shape);
  if (strides !== null) write(stridesAt, strides);
  return structOf(shape.length, shapeAt, strides === null ? 0n : stridesAt, itemsize, behind);
}

function structOf(ndim: number, shape: bigint, strides: bigint, itemsize: number, behind: number): bigint {
  const { address } = memory.bytes(structBytes.versioned + behind);
  const header = { major: 1, minor: 1, managerContext: 0n, deleter: 0n, flags: 0n, deviceType: 1, deviceId: 0 };
  const type = { code: 2, bits: 8 * itemsize, lanes: 1, byteOffset: 0n };
  writeRaw(address, "versioned", { ...header, ...type, ndim, shape, strides, data: elements });
  return address;
}

test("arrays that are nearly alike are distinguished, by DLPack and by the array interface", () => {
  let found = 0;
  const seen = new Set<StridedLayout>();
  check(
    fc.property(fc.array(arrays, { minLength: 2, maxLength: 10 }), (program) => {
      memory.reset();
      for (const array of program) {
        const { shape, strides, itemsize } = array;
        const expected = new StridedLayout(shape, strides, itemsize);
        using tensor = StridedMemoryView.fromDlpack({ managedTensorVersioned: tensorOf(array) });
        const described = {
          shape,
          typestr: `<f${itemsize}`,
          data: [elements, false],
          strides: strides?.map((stride) => stride * itemsize) ?? null,
          version: 3,
        };
        const view = StridedMemoryView.fromArrayInterface({ __array_interface__: described });
        for (const { layout } of [tensor, view]) {
          assertEquals([layout.shape, layout.strides, layout.itemsize], [shape, expected.strides, itemsize]);
          found += Number(seen.has(layout));
          seen.add(layout);
        }
      }
    }),
    1000,
  );
  assert(found > scaled(1000), `only ${found} layouts were known`);
});

test("a layout is found by its description alone, and the array that described it may change", () => {
  const shape = [5, 7];
  const layout = new StridedLayout(shape, [7, 1], 4);
  cacheLayout(layout, true);
  shape[0] = 6;
  assertStrictEquals(cachedLayout([5, 7, 9], [28, 4], 2, 4, 4), layout);
  for (
    const [other, strides, itemsize] of [
      [[5, 7], null, 4],
      [[5, 7], [28, 4], 2],
      [[5, 7], [28, 8], 4],
      [[5, 7], ["28", 4], 4],
      [["5", 7], [28, 4], 4],
      [[5n, 7n], [28, 4], 4],
      [[5.5, 7], [28, 4], 4],
      [[6, 7], [28, 4], 4],
      [[5, 7, 1], [28, 4, 4], 4],
      [[5], [28], 4],
      [[NaN, Infinity], [28, 4], 4],
    ] as const
  ) assertEquals(cachedLayout(other, strides, other.length, itemsize, 4), null);
});

test("strides are read where the struct says, also if only the upper half of their address differs from the shape's", () => {
  const { mmap, munmap } = libc().memory;
  const bytes = 4096n;
  const near = 0x5000_0000_0000n;
  const map = (wish: bigint) => mmap(wish, bytes, PROT.READ | PROT.WRITE, MAP.PRIVATE | MAP.ANONYMOUS, -1, 0n);
  const pages = [near, near + 2n ** 32n].map(map);
  assertEquals(pages, [near, near + 2n ** 32n], "nothing else of this process is there");
  const write = (at: bigint, values: readonly bigint[]) => new BigInt64Array(ffiPort().memory(at, 16)).set(values);
  const strides = near + 2n ** 32n + 64n;
  write(near, [3n, 2n]);
  write(near + 64n, [7n, 7n]);
  write(strides, [2n, 1n]);
  using view = StridedMemoryView.fromDlpack({ managedTensorVersioned: structOf(2, near, strides, 4, 0) });
  assertEquals([view.shape, view.strides], [[3, 2], [2, 1]]);
  for (const page of pages) munmap(page, bytes);
});

test("a struct of another version is not read beyond its version", () => {
  const known = 32; // version, context, deleter and flags are the same in all versions
  const { address, bytes } = memory.bytes(known);
  bytes[0] = 2;
  assertThrows(
    () => StridedMemoryView.fromDlpack({ managedTensorVersioned: address }),
    ExchangeError,
    "DLPack 2.0: expected 1.x",
  );
});
