/**
 * Plans of copies on devices are found by what they depend on: a plan that is found is the one that would be made, and
 * arrays that are sliced anew find it.
 */
import { assert, assertEquals, assertNotStrictEquals, assertStrictEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, DeviceMemoryResource, slice, StridedMemoryView } from "../../mod.ts";
import { bytesOf, type Conversion, conversionOf } from "../../src/copy/conversion.ts";
import { decide, DecisionCache, devicePlanFor } from "../../src/copy/device_plan_cache.ts";
import { DType, StridedLayout } from "../../src/layout/mod.ts";
import { apart, meeting } from "../support/arrays.ts";
import { pairsOfTypes } from "../support/numbers.ts";
import { pairs as packedPairs } from "../support/packed_copies.ts";
import { check, fc, scaled } from "../support/property.ts";

/** What a plan depends on. */
interface Copy {
  readonly source: StridedLayout;
  readonly destination: StridedLayout;
  readonly alignment: { readonly from: bigint; readonly to: bigint };
  readonly canLaunch: boolean;
  readonly conversion: Conversion | null;
}

const conversions = pairsOfTypes
  .map(({ from, to }) => conversionOf(DType.from(from.name), DType.from(to.name)))
  .filter((conversion) => conversion !== null);

const { dense } = StridedLayout;

/** Few shapes and steps, so that copies differ in little; some of the sizes are too large for a key that is exact. */
const sides: fc.Arbitrary<Pick<Copy, "source" | "destination" | "conversion">> = fc.oneof(
  fc.tuple(
    fc.constantFrom([], [0], [8], [16], [2, 16], [16, 2], [16, 16]),
    fc.constantFrom(1, 2, 3, 8, 16),
  ).chain(([shape, itemsize]) =>
    fc.record({
      source: fc.oneof(apart(shape, itemsize), meeting(shape, itemsize)).map(({ layout }) => layout),
      destination: apart(shape, itemsize).map(({ layout }) => layout),
      conversion: fc.constant(null),
    })
  ),
  fc.constantFrom(...conversions).chain((conversion) => {
    const { from, to } = conversion;
    return fc.constant({ source: dense([16], bytesOf(from)), destination: dense([16], bytesOf(to)), conversion });
  }),
  packedPairs.map(({ source, destination }) => ({
    source: source.layout,
    destination: destination.layout,
    conversion: null,
  })),
  fc.constantFrom(2 ** 44, 2 ** 50).map((itemsize) => ({
    source: dense([1], itemsize),
    destination: dense([1], itemsize),
    conversion: null,
  })),
);

const addresses = fc.bigInt(0n, 40n).map((at) => (1n << 47n) + at);
const conditions = fc.record({ from: addresses, to: addresses, canLaunch: fc.boolean() });

/** Each copy under several conditions. */
const programs = fc.array(
  fc.tuple(sides, fc.array(conditions, { minLength: 1, maxLength: 4 })),
  { minLength: 1, maxLength: 8 },
).map((several) =>
  several.flatMap(([one, all]): Copy[] =>
    all.map(({ from, to, canLaunch }) => ({ ...one, alignment: { from, to }, canLaunch }))
  )
);

/** The same copy of other objects, whose first elements lie elsewhere. */
function anewBy(copy: Copy, elements: number): Copy {
  const moved = (layout: StridedLayout) => {
    const { shape, strides, itemsize, sliceOffset } = layout;
    return itemsize >= 2 ** 44 ? layout : StridedLayout.from({
      shape,
      strides,
      itemsize,
      sliceOffset: sliceOffset + elements * 8, // whole bytes of packed elements, too
    });
  };
  return { ...copy, source: moved(copy.source), destination: moved(copy.destination) };
}

function decideBy(cache: DecisionCache, { source, destination, alignment, canLaunch, conversion }: Copy) {
  return cache.decide(source, destination, alignment, canLaunch, conversion);
}

function decideAfresh({ source, destination, alignment, canLaunch, conversion }: Copy) {
  return decide(source, destination, alignment, canLaunch, conversion);
}

/**
 * Whether a value consists of plain objects, arrays, and what they can be compared by: nothing that can hold memory.
 */
function isData(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return typeof value !== "function";
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  return isPlain && Object.values(value).every(isData);
}

test("a plan that is found is the plan that would be made, whatever was planned before, and is found again", () => {
  let found = 0;
  check(
    fc.property(programs, fc.array(fc.nat(31), { minLength: 1, maxLength: 40 }), fc.nat(3), (program, order, moved) => {
      const cache = new DecisionCache();
      const made = new Set<unknown>();
      for (const place of [...program.keys(), ...order]) {
        const copy = program[place % program.length];
        assert(copy !== undefined);
        const decision = decideBy(cache, copy);
        assertEquals(decision, decideAfresh(copy));
        assert(isData(decision), "a plan holds more than data");
        if (made.has(decision)) found++;
        made.add(decision);
        const isCached = copy.source.itemsize < 2 ** 44 &&
          (decision.plan?.kind !== "packed" || decision.plan.parts.length <= 16);
        const again = decideBy(cache, anewBy(copy, moved));
        if (isCached) assertStrictEquals(again, decision);
        else assertNotStrictEquals(again, decision);
        assertEquals(again, decision);
      }
    }),
    300,
  );
  assert(found > scaled(500), `only ${found} were found`);
});

test("arrays that are sliced anew for each copy share a plan; each device has its own", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const planOf = (view: StridedMemoryView, from: StridedMemoryView, device = 0) => {
    const planned = devicePlanFor(from, view, cuda.device(device).defaultStream, null);
    assert(planned !== null);
    return planned;
  };
  const memory = new DeviceMemoryResource(cuda.device(0));
  const zeros = (shape: readonly number[]) => StridedMemoryView.zeros(shape, { dtype: "float32", memory });
  const [rows, columns] = [zeros([8, 32, 64]), zeros([8, 64, 32])];
  const sliced = (i: number) => [rows.sliced(i), columns.sliced(i).permuted([1, 0])] as const;
  const first = planOf(...sliced(0));
  for (let i = 1; i < 8; i++) {
    const { plan, from, to } = planOf(...sliced(i));
    assertStrictEquals(plan, first.plan);
    assertEquals([from - first.from, to - first.to], [BigInt(i * 8192), BigInt(i * 8192)]);
  }
  // Not aligned to 16 bytes.
  const odd = planOf(rows.sliced(0, slice(), slice(1)), columns.sliced(0, slice(1)).permuted([1, 0]));
  assertNotStrictEquals(odd.plan, first.plan);
  assertEquals([odd.to - first.to, odd.from - first.from], [4n, 128n]);
  const [here, there] = sliced(2);
  assertEquals(decideOn(1), { ...first.plan });
  assertNotStrictEquals(decideOn(1), first.plan);

  function decideOn(device: number) {
    const reaches = () => true;
    return devicePlanFor(there, here, cuda.device(device).defaultStream, null, reaches)?.plan;
  }
});

test("plans of many kernels are not kept", () => {
  const cache = new DecisionCache();
  const alignment = { from: 0n, to: 0n };
  const kernels = (rows: number, columns: number) => {
    const source = dense([rows, columns], 0.5);
    const decided = () => {
      const destination = new StridedLayout([rows, columns], [columns, rows], 0.5); // interleaved
      return cache.decide(source, destination, alignment, true, null).plan;
    };
    const plan = decided();
    assert(plan?.kind === "packed");
    return { count: plan.parts.length, isKept: decided() === plan };
  };
  assertEquals(kernels(3, 2).isKept, true);
  for (const [rows, columns] of [[5, 7], [17, 16], [16, 17], [40, 41]] as const) {
    const { count, isKept } = kernels(rows, columns);
    assertEquals(isKept, count <= 16, `${count} kernels`);
  }
});
