/** The cache of plans finds a plan for what two layouts say: for any layouts that say the same, and for no others. */
import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { test } from "node:test";
import { PlanCache } from "../../src/copy/plan_cache.ts";
import { StridedLayout } from "../../src/layout/mod.ts";
import { check, fc, scaled } from "../support/property.ts";

/** A copy, in few enough numbers that many copies differ in only one. */
interface Copy {
  readonly shape: readonly number[];
  readonly from: readonly number[];
  readonly to: readonly number[];
  readonly kind: number;
}

/** Objects of its own each time, whose first elements lie anywhere. */
function layoutsOf({ shape, from, to }: Copy, first = 0) {
  const layout = (strides: readonly number[]) =>
    StridedLayout.from({ shape, strides, itemsize: 4, sliceOffset: first });
  return [layout(from), layout(to)] as const;
}

const copies = fc.integer({ min: 0, max: 3 }).chain((ndim): fc.Arbitrary<Copy> => {
  const numbers = (...from: number[]) => fc.array(fc.constantFrom(...from), { minLength: ndim, maxLength: ndim });
  const strides = numbers(0, 1, 2, 32, 2 ** 32, -1);
  return fc.record({ shape: numbers(0, 1, 2, 33), from: strides, to: strides, kind: fc.constantFrom(1, 4, 2 ** 32) });
});

test("a copy finds its own plan and no other, and a plan just made is found by equal layouts", () => {
  let found = 0;
  check(
    fc.property(fc.array(copies, { minLength: 2, maxLength: 30 }), fc.nat(9), (program, first) => {
      const cache = new PlanCache<string>();
      const known = new Set<string>();
      for (const copy of [...program, ...program]) {
        const name = JSON.stringify(copy);
        const [source, destination] = layoutsOf(copy);
        const plan = cache.find(source, destination, copy.kind);
        assert(plan === null ? true : plan === name && known.has(name));
        if (plan !== null) found++;
        else cache.add(source, destination, copy.kind, name);
        known.add(name);
        assertEquals(cache.find(source, destination, copy.kind), name);
        assertEquals(cache.find(...layoutsOf(copy, first), copy.kind), name);
      }
    }),
    300,
  );
  assert(found > scaled(1000), `only ${found} were found`);
});

test("whatever two copies differ in, in whichever places they fall, neither gets the other's plan", () => {
  // More copies than there are places.
  const parts: Readonly<Record<string, (i: number) => Copy>> = {
    kind: (i) => ({ shape: [3], from: [1], to: [1], kind: i }),
    extent: (i) => ({ shape: [2, i], from: [1, 1], to: [1, 1], kind: 4 }),
    source: (i) => ({ shape: [2, 3], from: [1, i], to: [1, 1], kind: 4 }),
    destination: (i) => ({ shape: [2, 3], from: [1, 1], to: [1, i], kind: 4 }),
  };
  for (const [part, copyOf] of Object.entries(parts)) {
    const cache = new PlanCache<number>();
    // The side that stays the same is one object.
    const [sameSource, sameDestination] = layoutsOf(copyOf(1));
    const sidesOf = (i: number) => {
      const [source, destination] = layoutsOf(copyOf(i));
      if (part === "kind") return [sameSource, sameDestination] as const;
      if (part === "source") return [source, sameDestination] as const;
      return part === "destination" ? [sameSource, destination] as const : [source, destination] as const;
    };
    let kept = 0;
    for (let i = 0; i < 2000; i++) {
      const [source, destination] = sidesOf(i);
      assertEquals(cache.find(source, destination, copyOf(i).kind), null, part);
      cache.add(source, destination, copyOf(i).kind, i);
    }
    for (let i = 0; i < 2000; i++) {
      const plan = cache.find(...sidesOf(i), copyOf(i).kind);
      assert(plan === null || plan === i);
      if (plan !== null) kept++;
    }
    assert(kept > 200 && kept <= 512, `${kept} are cached, by ${part}`);
  }
});

test("a copy of fewer axes does not get the plan of one of more", () => {
  const cache = new PlanCache<number>();
  for (let i = 0; i < 5000; i++) {
    cache.add(...layoutsOf({ shape: [i, 1], from: [1, 1], to: [1, 1], kind: 4 }), 4, i);
    assertEquals(cache.find(...layoutsOf({ shape: [i], from: [1], to: [1], kind: 4 }), 4), null);
  }
});

test("two copies in turn keep their plans, wherever those fall", () => {
  const [first, ...others] = Array.from(
    { length: 600 },
    (_, i) => layoutsOf({ shape: [i], from: [1], to: [2], kind: 4 }),
  );
  assert(first !== undefined);
  for (const other of others) {
    const cache = new PlanCache<object>();
    const [one, two] = [{}, {}];
    cache.add(...first, 4, one);
    cache.add(...other, 4, two);
    assertStrictEquals(cache.find(...first, 4), one);
    assertStrictEquals(cache.find(...other, 4), two);
  }
});
