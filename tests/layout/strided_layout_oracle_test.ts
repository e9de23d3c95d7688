/**
 * Every operation against an oracle that enumerates all elements, more than 100,000 cases a run in total.
 */
import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type DenseOrder, slice, StridedLayout } from "../../src/layout/mod.ts";
import { check, fc, scaled } from "../support/property.ts";
import {
  type Grid,
  gridOf,
  indicesOf,
  layouts,
  lookUp,
  makeGrid,
  permutations,
  shapes,
  slicedGrid,
  sliceItems,
  stridesFor,
  valueAt,
} from "../support/strided_oracle.ts";

/** Fails unless the layout has the grid's elements, and describes itself correctly. */
function assertMeans(layout: StridedLayout, grid: Grid): void {
  const { shape, values } = gridOf(layout);
  assertEquals(shape, grid.shape);
  assertEquals(values, grid.values);
  assertDescribesItself(layout);
}

/** Fails unless volume and bounds match the elements, and every number is valid. */
function assertDescribesItself(layout: StridedLayout): void {
  const { values } = gridOf(layout);
  assertEquals(layout.volume, values.length);
  assertEquals(layout.ndim, layout.shape.length);
  assertEquals(layout.strides.length, layout.shape.length);
  for (const number of [...layout.shape, ...layout.strides, layout.sliceOffset]) {
    assert(Number.isSafeInteger(number) && !Object.is(number, -0), `${number} in ${layout}`);
  }
  const bounds = values.length === 0 ? [0, -1] : [Math.min(...values), Math.max(...values)];
  assertEquals([...layout.offsetBounds], bounds);
  assertEquals([layout.minOffset, layout.maxOffset], bounds);
}

/** Whether the offsets are consecutive in this visiting order. */
function isConsecutive(values: readonly number[]): boolean {
  return values.every((value, place) => place === 0 || value === (values[place - 1] ?? NaN) + 1);
}

test("a layout describes its elements: volume, bounds, size, order and contiguity", () => {
  check(
    fc.property(layouts(), (layout) => {
      assertDescribesItself(layout);
      const grid = gridOf(layout);
      const { values } = grid;
      const inF = lookUp(grid, layout.shape.toReversed(), (index) => index.toReversed()).values;
      const sorted = values.toSorted((left, right) => left - right);
      const isAscending = layout.strides.every((stride, axis) => stride > 0 || layout.shape[axis] === 1);
      assertEquals(layout.isContiguousC, isConsecutive(values));
      assertEquals(layout.isContiguousF, isConsecutive(inF));
      assertEquals(layout.isContiguousAny, values.length === 0 || (isConsecutive(sorted) && isAscending));
      assertEquals(layout.isDense, layout.isContiguousAny && layout.sliceOffset === 0);
      assertEquals(layout.stridesInBytes, layout.strides.map((stride) => stride * layout.itemsize));
      assertEquals(layout.sliceOffsetInBytes, layout.sliceOffset * layout.itemsize);
      if (layout.minOffset < 0) assertThrows(() => layout.requiredSizeInBytes(), RangeError, "before offset 0");
      else assertEquals(layout.requiredSizeInBytes(), (Math.max(-1, ...values) + 1) * layout.itemsize);
      const [first, second] = [layout.strideOrder, layout.strideOrder];
      assertStrictEquals(first, second);
      assertEquals(first.toSorted((left, right) => left - right), layout.shape.map((_, axis) => axis));
      const sizes = first.map((axis) => Math.abs(layout.strides[axis] ?? NaN));
      assertEquals(sizes, sizes.toSorted((left, right) => right - left));
    }),
    3000,
  );
});

test("a layout is unique exactly if no two of its indices meet", () => {
  check(
    fc.property(layouts(), (layout) => {
      const { values } = gridOf(layout);
      assertEquals(layout.isUnique, new Set(values).size === values.length, String(layout));
    }),
    3000,
  );
  // Interleaved axes, which sorting the strides cannot decide.
  const interleaved = fc.array(fc.tuple(fc.integer({ min: 2, max: 5 }), fc.integer({ min: 1, max: 60 })), {
    minLength: 2,
    maxLength: 4,
  });
  check(
    fc.property(interleaved, (axes) => {
      const layout = new StridedLayout(axes.map(([extent]) => extent), axes.map(([, stride]) => stride), 1);
      const { values } = gridOf(layout);
      assertEquals(layout.isUnique, new Set(values).size === values.length, String(layout));
    }),
    1500,
  );
});

test("an offset is that of its index", () => {
  check(
    fc.property(layouts().filter(({ volume }) => volume > 0), fc.nat(), (layout, choice) => {
      const indices = indicesOf(layout.shape);
      const index = indices[choice % indices.length] ?? [];
      assertEquals(layout.offsetOf(...index), valueAt(gridOf(layout), index));
      const fromBack = index.map((position, axis) => position - (layout.shape[axis] ?? NaN));
      assertEquals(layout.offsetOf(...fromBack), layout.offsetOf(...index));
    }),
    750,
  );
});

test("slicing takes the elements that Python would", () => {
  check(
    fc.property(
      layouts().chain((layout) => fc.tuple(fc.constant(layout), sliceItems(layout.shape))),
      ([layout, items]) => {
        assertMeans(layout.sliced(...items), slicedGrid(gridOf(layout), items));
      },
    ),
    5000,
  );
});

test("slicing a slice is slicing by the composed positions", () => {
  const twice = layouts().chain((layout) =>
    sliceItems(layout.shape).chain((first) => {
      const once = layout.sliced(...first);
      return sliceItems(once.shape).map((second) => ({ layout, first, second }));
    })
  );
  check(
    fc.property(twice, ({ layout, first, second }) => {
      const grid = slicedGrid(slicedGrid(gridOf(layout), first), second);
      assertMeans(layout.sliced(...first).sliced(...second), grid);
    }),
    1500,
  );
});

test("permuting reorders the axes, and the inverse undoes it", () => {
  const cases = layouts().chain((layout) => fc.tuple(fc.constant(layout), permutations(layout.ndim)));
  check(
    fc.property(cases, ([layout, axes]) => {
      const permuted = layout.permuted(axes);
      const inverse = axes.map((_, axis) => axes.indexOf(axis));
      const shape = axes.map((axis) => layout.shape[axis] ?? NaN);
      assertMeans(permuted, lookUp(gridOf(layout), shape, (index) => inverse.map((place) => index[place] ?? NaN)));
      assert(permuted.permuted(inverse).equals(layout));
      assert(layout.permuted(axes.map((axis) => axis - layout.ndim)).equals(permuted));
      const reversed = axes.map((_, axis) => layout.ndim - 1 - axis);
      assert(layout.transposed().equals(layout.permuted(reversed)));
    }),
    2500,
  );
});

/** Shapes with a given number of elements, with ones in between. */
function shapesOfVolume(volume: number): fc.Arbitrary<number[]> {
  if (volume === 0) return shapes(3).map((shape) => [...shape, 0]);
  const factors: number[] = [];
  let rest = volume;
  for (let factor = 2; rest > 1; factor++) {
    for (; rest % factor === 0; rest /= factor) factors.push(factor);
  }
  return fc.record({
    order: fc.shuffledSubarray(factors, { minLength: factors.length }),
    joins: fc.array(fc.boolean(), { minLength: factors.length, maxLength: factors.length }),
    ones: fc.array(fc.nat(4), { maxLength: 2 }),
  }).map(({ order, joins, ones }) => {
    const shape: number[] = [];
    order.forEach((factor, place) => {
      const last = shape.length - 1;
      if (joins[place] === true && last >= 0) shape[last] = (shape[last] ?? 1) * factor;
      else shape.push(factor);
    });
    for (const place of ones) shape.splice(place, 0, 1);
    return shape;
  });
}

test("a reshape is possible exactly if there are strides for it, and keeps the order", () => {
  const cases = layouts().chain((layout) =>
    fc.record({ layout: fc.constant(layout), shape: shapesOfVolume(layout.volume), open: fc.nat(8) })
  );
  check(
    fc.property(cases, ({ layout, shape, open }) => {
      const grid = gridOf(layout);
      if (stridesFor(grid, shape) === null) {
        assertThrows(() => layout.reshaped(shape), RangeError, "not evenly spaced");
        return;
      }
      const reshaped = layout.reshaped(shape);
      assertMeans(reshaped, { shape, values: grid.values });
      assert(layout.reshaped(layout.shape).reshaped(shape).equals(reshaped));
      const others = shape.reduce((product, extent, axis) => axis === open ? product : product * extent, 1);
      if (open < shape.length && others !== 0) {
        assert(layout.reshaped(shape.with(open, -1)).equals(reshaped));
      }
    }),
    5000,
  );
});

test("a dense layout takes any shape of its volume", () => {
  const cases = shapes().chain((shape) =>
    fc.tuple(fc.constant(shape), shapesOfVolume(shape.reduce((product, extent) => product * extent, 1)))
  );
  check(
    fc.property(cases, ([shape, wanted]) => {
      assert(StridedLayout.dense(shape, 4).reshaped(wanted).isDense);
    }),
    500,
  );
});

test("flattening joins all the axes that can be joined", () => {
  const cases = layouts().chain((layout) =>
    fc.record({
      layout: fc.constant(layout),
      range: fc.tuple(fc.nat(Math.max(layout.ndim - 1, 0)), fc.nat(Math.max(layout.ndim - 1, 0))),
    })
  );
  check(
    fc.property(cases, ({ layout, range: [start, end] }) => {
      const { values } = gridOf(layout);
      const flat = layout.flattened({ start, end });
      assertEquals(gridOf(flat).values, values);
      assertDescribesItself(flat);
      if (layout.ndim === 0) return assertEquals(flat.shape, [1]);
      // Axes outside the range are unchanged, and no two neighbours inside it could still be joined.
      const last = Math.max(start, end);
      const kept = layout.ndim - 1 - last;
      assertEquals(flat.shape.slice(0, start), layout.shape.slice(0, start));
      assertEquals(flat.shape.slice(flat.ndim - kept), layout.shape.slice(last + 1));
      if (start > end) return assertEquals(flat.shape, layout.shape);
      const inside = flat.ndim - kept - start;
      for (let axis = start; axis < start + inside - 1; axis++) {
        const joined = flat.shape.toSpliced(axis, 2, (flat.shape[axis] ?? NaN) * (flat.shape[axis + 1] ?? NaN));
        assertEquals(stridesFor({ shape: [...flat.shape], values }, joined), null, `${layout} to ${flat}`);
      }
    }),
    2500,
  );
});

test("masks of layouts of one shape, combined, flatten all of them alike", () => {
  const both = shapes().chain((shape) => {
    const strides = fc.oneof(
      permutations(shape.length).map((order) => [...StridedLayout.dense(shape, 1, order).strides]),
      fc.array(fc.integer({ min: -6, max: 6 }), { minLength: shape.length, maxLength: shape.length }),
      fc.constant([...StridedLayout.dense(shape, 1).strides]),
    );
    return fc.record({ shape: fc.constant(shape), strides: fc.tuple(strides, strides), some: fc.bigInt(0n, 63n) });
  });
  check(
    fc.property(both, ({ shape, strides: [one, two], some }) => {
      const [left, right] = [new StridedLayout(shape, one, 1), new StridedLayout(shape, two, 1)];
      assert((left.flattenedAxisMask() & 1n) === 0n);
      // Any subset of the bits can be applied, so a third layout may restrict it.
      const mask = left.flattenedAxisMask() & right.flattenedAxisMask() & some;
      const [flatLeft, flatRight] = [left.flattened({ mask }), right.flattened({ mask })];
      assertEquals(flatLeft.shape, flatRight.shape);
      if (shape.length > 0) assertEquals(flatLeft.ndim, shape.length - mask.toString(2).replaceAll("0", "").length);
      assertEquals(gridOf(flatLeft).values, gridOf(left).values);
      assertEquals(gridOf(flatRight).values, gridOf(right).values);
      assert(left.flattened({ mask: left.flattenedAxisMask() }).equals(left.flattened()));
    }),
    2000,
  );
});

test("squeezing drops the axes of extent 1, and unsqueezing brings some back", () => {
  const cases = layouts().chain((layout) =>
    fc.record({ layout: fc.constant(layout), places: fc.uniqueArray(fc.nat(layout.ndim + 1), { maxLength: 2 }) })
  );
  check(
    fc.property(cases, ({ layout, places }) => {
      const grid = gridOf(layout);
      const shape = layout.shape.filter((extent) => extent !== 1);
      const squeezed = layout.squeezed();
      assertMeans(squeezed, { shape: layout.volume === 0 ? [0] : shape, values: grid.values });

      const ndim = layout.ndim + places.length;
      const axes = places.filter((place) => place < ndim);
      if (axes.length < places.length) {
        assertThrows(() => layout.unsqueezed(places), RangeError, "axis");
        return;
      }
      const wider = layout.unsqueezed(axes);
      const wanted = [...layout.shape];
      for (const axis of axes.toSorted((left, right) => left - right)) wanted.splice(axis, 0, 1);
      assertMeans(wider, { shape: wanted, values: grid.values });
      assertEquals(wider.isContiguousC, layout.isContiguousC);
      assertEquals(wider.isContiguousAny, layout.isContiguousAny);
      assert(layout.unsqueezed(axes.map((axis) => axis - ndim)).equals(wider));
      const [axis] = axes;
      if (axes.length !== 1 || axis === undefined) return;
      assert(layout.unsqueezed(axis).equals(wider));
      // A null among the items of sliced() does the same, except for empty layouts, whose strides slicing drops.
      const before = Array.from({ length: axis }, () => slice());
      if (layout.volume > 0) assert(layout.sliced(...before, null).equals(wider));
    }),
    2500,
  );
});

test("broadcasting repeats the elements by NumPy's rules, and refuses what they refuse", () => {
  const cases = layouts().chain((layout) =>
    fc.record({
      layout: fc.constant(layout),
      front: fc.array(fc.nat(3), { maxLength: 2 }),
      changes: fc.array(fc.constantFrom(null, null, null, 0, 1, 2, 3), {
        minLength: layout.ndim,
        maxLength: layout.ndim,
      }),
    })
  );
  check(
    fc.property(cases, ({ layout, front, changes }) => {
      const back = layout.shape.map((extent, axis) => {
        const wanted = changes[axis] ?? null;
        return wanted === null || extent > 4 ? extent : wanted;
      });
      const shape = [...front, ...back];
      if (back.some((extent, axis) => extent !== layout.shape[axis] && layout.shape[axis] !== 1)) {
        assertThrows(() => layout.broadcastTo(shape), RangeError, "Cannot broadcast");
        return;
      }
      const grid = lookUp(
        gridOf(layout),
        shape,
        (index) => index.slice(front.length).map((position, axis) => layout.shape[axis] === 1 ? 0 : position),
      );
      assertMeans(layout.broadcastTo(shape), grid);
    }),
    1500,
  );
});

test("a dense copy has the shape, no gaps, and the nesting asked for", () => {
  const cases = layouts().chain((layout) => {
    const order: fc.Arbitrary<DenseOrder | "K"> = fc.oneof(
      fc.constantFrom("K", "C", "F"),
      permutations(layout.ndim),
    );
    return fc.tuple(fc.constant(layout), order);
  });
  check(
    fc.property(cases, ([layout, order]) => {
      const dense = layout.toDense(order);
      assertEquals(dense.shape, layout.shape);
      assertEquals(dense.itemsize, layout.itemsize);
      assertDescribesItself(dense);
      assert(dense.isDense);
      if (order === "C") assert(dense.isContiguousC);
      else if (order === "F") assert(dense.isContiguousF);
      else if (order === "K") {
        // Where elements do not meet, the copy keeps them in memory order, except along reversed axes.
        const upright = new StridedLayout(layout.shape, layout.strides.map(Math.abs), 1);
        const [from, to] = [gridOf(upright).values, gridOf(dense).values];
        const places = from.map((_, place) => place).toSorted((left, right) => (to[left] ?? 0) - (to[right] ?? 0));
        const isNested = layout.strideOrder.every((axis, position) => {
          const inner = layout.strideOrder.slice(position + 1);
          const reach = inner.reduce(
            (sum, other) => sum + Math.abs(layout.strides[other] ?? NaN) * ((layout.shape[other] ?? NaN) - 1),
            0,
          );
          return layout.shape[axis] === 1 || Math.abs(layout.strides[axis] ?? NaN) > reach;
        });
        if (isNested && layout.volume > 0) {
          assert(
            places.every((place, next) => next === 0 || (from[places[next - 1] ?? -1] ?? NaN) < (from[place] ?? NaN)),
          );
        }
      } else if (layout.volume > 0) {
        const slowestFirst = order.filter((axis) => layout.shape[axis] !== 1);
        const strides = slowestFirst.map((axis) => dense.strides[axis] ?? NaN);
        assertEquals(strides, strides.toSorted((left, right) => right - left));
      }
      assertStrictEquals(dense.toDense(order), dense);
      assert(StridedLayout.denseLike(layout, order).equals(dense));
      if (order !== "K") assert(new StridedLayout(layout.shape, dense.strides, layout.itemsize).equals(dense));
    }),
    2000,
  );
});

/**
 * Parts of dense layouts whose extents and offsets mostly divide evenly, so that a single one that does not decides
 * repacking.
 */
function evenLayouts(): fc.Arbitrary<StridedLayout> {
  return fc.record({
    rows: fc.integer({ min: 1, max: 3 }),
    columns: fc.constantFrom(8, 12, 16),
    start: fc.constantFrom(0, 1, 2, 4, 6),
    count: fc.constantFrom(2, 4, 6, 8),
    itemsize: fc.constantFrom(1, 2, 4),
  }).map(({ rows, columns, start, count, itemsize }) =>
    StridedLayout.dense([rows, columns], itemsize).sliced(slice(), slice(start, start + count))
  );
}

/** The bytes of all elements in C order. */
function bytesOf(layout: StridedLayout, ptr = 0): number[] {
  return gridOf(layout).values.flatMap((offset) =>
    Array.from({ length: layout.itemsize }, (_, byte) => ptr + offset * layout.itemsize + byte)
  );
}

/** An axis of a layout, if it has any. */
function axisOf({ ndim }: StridedLayout): fc.Arbitrary<{ readonly axis?: number }> {
  return ndim === 0
    ? fc.constant({})
    : fc.record({ axis: fc.integer({ min: -ndim, max: ndim - 1 }) }, { requiredKeys: [] });
}

test("repacking shows the same bytes in the same order, or refuses", () => {
  const cases = fc.oneof(layouts([1, 2, 3, 4, 8]), evenLayouts()).chain((layout) =>
    fc.record({
      layout: fc.constant(layout),
      itemsize: fc.constantFrom(1, 2, 3, 4, 6, 8, 12, 16),
      along: axisOf(layout),
      dataPtr: fc.constantFrom(0n, 0x1000n, 0x1004n, 0x1002n, 0x1001n),
      keepDim: fc.boolean(),
    })
  );
  check(
    fc.property(cases, ({ layout, itemsize, along: chosen, dataPtr, keepDim }) => {
      const { axis = -1 } = chosen;
      const along = axis < 0 ? axis + layout.ndim : axis;
      const extent = layout.shape[along] ?? NaN;
      const ratio = itemsize / layout.itemsize;
      const isAdjacent = extent === 1 || (extent > 1 && layout.strides[along] === 1);
      const canUnpack = Number.isInteger(1 / ratio) && isAdjacent;
      const canPack = Number.isInteger(ratio) && isAdjacent && extent % ratio === 0 &&
        layout.sliceOffset % ratio === 0 && dataPtr % BigInt(itemsize) === 0n &&
        layout.strides.every((stride, other) => other === along || layout.shape[other] === 1 || stride % ratio === 0);
      if (!(ratio === 1 || canPack || canUnpack)) {
        const expected = layout.ndim === 0 && (Number.isInteger(ratio) || Number.isInteger(1 / ratio)) ? "no axes" : "";
        assertThrows(() => layout.repacked(itemsize, { ...chosen, dataPtr, keepDim }), RangeError, expected);
        return;
      }
      const repacked = layout.repacked(itemsize, { ...chosen, dataPtr, keepDim });
      assertDescribesItself(repacked);
      assertEquals(repacked.itemsize, itemsize);
      assertEquals(repacked.sliceOffsetInBytes, layout.sliceOffsetInBytes);
      // Along the last axis the bytes even keep their order; for another axis, move it to the end first.
      const toEnd = (some: StridedLayout) =>
        some.permuted([...some.shape.map((_, place) => place).filter((place) => place !== along), along]);
      const isDropped = repacked.ndim < layout.ndim;
      assertEquals(isDropped, !keepDim && ratio > 1 && extent === ratio);
      if (layout.ndim === 0) return assert(repacked === layout);
      assertEquals(bytesOf(isDropped ? repacked : toEnd(repacked)), bytesOf(toEnd(layout)));
      if (!isDropped && layout.shape.every((one) => one !== 1)) {
        assert(repacked.repacked(layout.itemsize, { axis }).equals(layout));
      }
    }),
    1500,
  );
});

test("the largest compatible itemsize can be used, and nothing larger can", () => {
  const cases = fc.oneof(layouts([1, 2, 3, 4, 12, 0.5, 0.25, 0.75]), evenLayouts())
    .chain((layout) =>
      fc.record({
        layout: fc.constant(layout),
        max: fc.constantFrom(16, 12, 24, 48),
        along: axisOf(layout),
        dataPtr: fc.constantFrom(0n, 0x1000n, 0x1008n, 0x1004n, 0x1002n, 0x1001n, 0x1003n),
      })
    );
  check(
    fc.property(cases, ({ layout, max, along, dataPtr }) => {
      const answer = layout.maxCompatibleItemsize({ max, ...along, dataPtr });
      const isUsable = (itemsize: number) => {
        try {
          layout.repacked(itemsize, { ...along, dataPtr });
          return itemsize >= layout.itemsize;
        } catch {
          return false;
        }
      };
      assert(isUsable(answer), `${answer} for ${layout}`);
      const eighths = Array.from({ length: max * 8 }, (_, count) => (count + 1) / 8);
      const usable = eighths.filter((size) => max % size === 0 && isUsable(size));
      assertEquals(answer, usable.at(-1) ?? layout.itemsize, String(layout));
    }),
    1000,
  );
});

test("equal layouts are those with the same elements described the same way", () => {
  check(
    fc.property(layouts(), layouts(), (left, right) => {
      const same = JSON.stringify([left.shape, left.strides, left.itemsize, left.sliceOffset]) ===
        JSON.stringify([right.shape, right.strides, right.itemsize, right.sliceOffset]);
      assertEquals(left.equals(right), same);
      assertEquals(String(left) === String(right), same);
      if (left.sliceOffset === 0) assert(new StridedLayout(left.shape, left.strides, left.itemsize).equals(left));
    }),
    500,
  );
});

test("the properties of a layout do not depend on which were read before", () => {
  const names = ["isUnique", "isContiguousC", "isContiguousF", "isContiguousAny", "isDense", "strideOrder"] as const;
  check(
    fc.property(layouts(), fc.shuffledSubarray([...names], { minLength: names.length }), (layout, order) => {
      const asked = new Map(order.map((name) => [name, layout[name]]));
      for (const name of names) {
        const fresh = layout.permuted(layout.shape.map((_, axis) => axis));
        assertEquals(fresh[name], asked.get(name));
        assertEquals(layout[name], asked.get(name));
      }
    }),
    500,
  );
});

test("the oracle distinguishes a wrong layout from a right one", () => {
  // The properties above must not hold by construction.
  const right = makeGrid([2, 3], [3, 1]);
  assertThrows(() => assertMeans(StridedLayout.dense([2, 3], 1, "F"), right));
  assertThrows(() => assertMeans(StridedLayout.dense([3, 2], 1), right));
  assertMeans(StridedLayout.dense([2, 3], 1), right);
});

test("copying first as an error advises resolves the error", () => {
  const advice = /toDense\((.*?)\)/;
  /** Whether a call makes a complaint with advice; asserts that following the advice resolves the complaint. */
  const follow = (layout: StridedLayout, call: (layout: StridedLayout) => unknown, complaint: string) => {
    const said = messageOf(() => call(layout));
    if (said === null || !said.includes(complaint)) return false;
    const order: unknown = JSON.parse(advice.exec(said)?.[1] ?? "null");
    if (order === null) return false;
    const copy = layout.toDense(order as "C"); // known only from the error's text
    assertEquals(messageOf(() => call(copy))?.includes(complaint) ?? false, false, said);
    return true;
  };
  let [reshapes, repacks] = [0, 0];
  const cases = layouts([1, 2, 4]).chain((layout) =>
    fc.record({
      layout: fc.constant(layout),
      shape: shapes().map((shape) => [...shape, -1]),
      axis: fc.integer({ min: -layout.ndim, max: Math.max(0, layout.ndim - 1) }),
      itemsize: fc.constantFrom(1, 2, 4, 8),
    })
  );
  check(
    fc.property(cases, ({ layout, shape, axis, itemsize }) => {
      reshapes += Number(follow(layout, (one) => one.reshaped(shape), "not evenly spaced"));
      reshapes += Number(follow(layout, (one) => one.reshaped([-1]), "not evenly spaced"));
      if (layout.ndim === 0) return;
      repacks += Number(follow(layout, (one) => one.repacked(itemsize, { axis }), "its stride must be 1"));
    }),
    750,
  );
  assert(Math.min(reshapes, repacks) > scaled(50), `${reshapes} and ${repacks}`);
});

function messageOf(call: () => unknown): string | null {
  try {
    call();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
