/**
 * Plans of copies in host memory: they move the right bytes, in a cache-friendly order. Here they are carried out by
 * hand, one byte at a time.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { type HostPlan, type PlacedMove, planHostCopy } from "../../src/copy/host_plan.ts";
import type { MoveAxis } from "../../src/native/mod.ts";
import { check, fc } from "../support/property.ts";
import { permutations } from "../support/strided_oracle.ts";

/** Where each piece of a move is written and read, in order. */
function* piecesOf({ axes, toOffset, fromOffset }: PlacedMove): Generator<readonly [to: number, from: number]> {
  const count = axes.map(() => 0);
  for (;;) {
    let [to, from] = [toOffset, fromOffset];
    axes.forEach((axis, i) => {
      to += (count[i] ?? NaN) * axis.to;
      from += (count[i] ?? NaN) * axis.from;
    });
    yield [to, from];
    let axis = axes.length - 1;
    while (axis >= 0 && (count[axis] ?? NaN) + 1 === axes[axis]?.extent) count[axis--] = 0;
    if (axis < 0) return;
    count[axis] = (count[axis] ?? NaN) + 1;
  }
}

/** Which source byte each byte of the destination gets; the last one if there are several. */
function sourcesOf(plan: HostPlan): Map<number, number> {
  const sources = new Map<number, number>();
  for (const move of plan.moves) {
    const read = move.element ?? move.bytes;
    for (const [to, from] of piecesOf(move)) {
      for (let byte = 0; byte < move.bytes; byte++) sources.set(to + byte, from + byte % read);
    }
  }
  return sources;
}

/** The same, by definition of a copy: element by element, in order. */
function sourcesByHand(axes: readonly MoveAxis[], itemsize: number) {
  if (axes.some(({ extent }) => extent === 0)) return new Map<number, number>();
  const move: PlacedMove = { bytes: itemsize, axes, toOffset: 0, fromOffset: 0 };
  return sourcesOf({ moves: [move] } as unknown as HostPlan); // only the moves are read
}

const itemsizes = fc.oneof(fc.constantFrom(1, 2, 4, 8, 16), fc.integer({ min: 1, max: 40 }));

/** Axes whose elements lie apart in the destination, in any order and direction; anywhere in the source. */
const apart = fc.tuple(itemsizes, fc.array(fc.constantFrom(0, 1, 2, 2, 3, 4, 5, 7, 17, 33, 40, 70), { maxLength: 6 }))
  .filter(([, shape]) => shape.reduce((count: number, extent) => count * extent, 1) <= 3000)
  .chain(([itemsize, shape]) => {
    const perAxis = <T>(one: fc.Arbitrary<T>) => fc.array(one, { minLength: shape.length, maxLength: shape.length });
    const nested = fc.record({ order: permutations(shape.length), gaps: perAxis(fc.constantFrom(0, 0, 0, 1, 5)) }).map(
      ({ order, gaps }) => {
        const strides = shape.map(() => 0);
        let stride = itemsize;
        for (const axis of order) {
          strides[axis] = stride + (gaps[axis] ?? NaN) * itemsize;
          stride = (strides[axis] ?? NaN) * Math.max(shape[axis] ?? NaN, 1);
        }
        return strides;
      },
    );
    const anywhere = perAxis(fc.integer({ min: -50, max: 50 }));
    return fc.record({
      itemsize: fc.constant(itemsize),
      axes: fc.tuple(
        nested,
        fc.oneof(nested, nested, anywhere),
        perAxis(fc.constantFrom(1, 1, -1)),
        perAxis(fc.boolean()),
      )
        .map(([to, from, signs, repeated]) =>
          shape.map((extent, i): MoveAxis => ({
            extent,
            to: (to[i] ?? NaN) * (signs[i] ?? NaN),
            from: repeated[i] === true && signs[i] === -1 ? 0 : from[i] ?? NaN,
          }))
        ),
    });
  });

/** Axes whose elements may meet in the destination: mostly overlapping rows. */
const meeting = itemsizes.chain((itemsize) =>
  fc.record({
    itemsize: fc.constant(itemsize),
    axes: fc.array(
      fc.record({
        extent: fc.integer({ min: 1, max: 6 }),
        to: fc.oneof(fc.constant(itemsize), fc.integer({ min: -9, max: 40 })),
        from: fc.oneof(fc.constantFrom(0, itemsize), fc.integer({ min: -40, max: 40 })),
      }),
      { maxLength: 4 },
    ),
  })
);

/** Long rows that overlap. */
const overlapping = fc.record({
  itemsize: fc.constantFrom(1, 4, 7),
  rows: fc.integer({ min: 2, max: 4 }),
  long: fc.integer({ min: 40, max: 400 }),
  to: fc.integer({ min: -20, max: 300 }),
  from: fc.integer({ min: 0, max: 2000 }),
}).map(({ itemsize, rows, long, to, from }) => ({
  itemsize,
  axes: [{ extent: rows, to, from }, { extent: long, to: itemsize, from: itemsize }],
}));

test("a plan moves every byte of every element to its place, and where elements meet the last one stays", () => {
  check(
    fc.property(
      fc.oneof({ weight: 3, arbitrary: apart }, { weight: 1, arbitrary: fc.oneof(meeting, meeting, overlapping) }),
      ({ axes, itemsize }) => {
        const plan = planHostCopy(axes, itemsize);
        assertEquals(sourcesOf(plan), sourcesByHand(axes, itemsize));
      },
    ),
    1500,
  );
});

test("a plan's spans are from the first byte of an element to the last, and no piece is moved in part", () => {
  check(
    fc.property(fc.oneof(apart, meeting), ({ axes, itemsize }) => {
      const plan = planHostCopy(axes, itemsize);
      const bytes = sourcesByHand(axes, itemsize);
      const ends = (all: Iterable<number>) => {
        const sorted = [...all].toSorted((one, other) => one - other);
        return { start: sorted[0] ?? 0, end: (sorted.at(-1) ?? -1) + 1 };
      };
      assertEquals(plan.to, ends(bytes.keys()));
      // Some elements that meet are overwritten; they are read all the same.
      const { start, end } = ends(bytes.values());
      assert(plan.from.start <= start && plan.from.end >= end);
      for (const { bytes, element, axes } of plan.moves) {
        assert([1, 2, 4, 8, 16].includes(bytes) || bytes > 32, `${bytes} bytes`);
        assert(element === undefined || axes.at(-1)?.from === 0);
        assert(axes.every(({ extent }) => extent > 0));
      }
    }),
    1500,
  );
});

test("elements laid out alike on both sides are one run, in whatever order and direction", () => {
  const shape = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 6 });
  check(
    fc.property(
      itemsizes,
      shape.chain((shape) => fc.tuple(fc.constant(shape), permutations(shape.length))),
      (itemsize, [shape, order]) => {
        let stride = itemsize;
        const axes: MoveAxis[] = shape.map((extent) => ({ extent, to: 0, from: 0 }));
        for (const axis of order) {
          const extent = shape[axis] ?? NaN;
          const sign = axis % 2 === 0 ? 1 : -1;
          axes[axis] = { extent, to: sign * stride, from: sign * stride };
          stride *= extent;
        }
        const { run, runs, tile, moves } = planHostCopy(axes, itemsize);
        assertEquals({ run, runs, tile, moves: moves.length }, { run: stride, runs: 1, tile: null, moves: 1 });
      },
    ),
    300,
  );
});

/** How many 64-byte lines are fetched into a cache that holds the `capacity` most recently used lines. */
function fetches(plan: HostPlan, capacity: number): { fetched: number; lines: number } {
  const cache = new Map<string, true>();
  const seen = new Set<string>();
  let fetched = 0;
  const touch = (side: string, at: number, bytes: number) => {
    for (let line = Math.floor(at / 64); line <= Math.floor((at + bytes - 1) / 64); line++) {
      const name = `${side}${line}`;
      seen.add(name);
      if (!cache.delete(name)) fetched++;
      cache.set(name, true);
      if (cache.size > capacity) cache.delete(cache.keys().next().value ?? "");
    }
  };
  for (const move of plan.moves) {
    for (const [to, from] of piecesOf(move)) {
      touch("to", to, move.bytes);
      touch("from", from, move.element ?? move.bytes);
    }
  }
  return { fetched, lines: seen.size };
}

test("whatever the order of the axes, hardly a line is fetched repeatedly into a cache of 16 KiB", () => {
  const sizes = fc.constantFrom(1, 2, 3, 4, 8, 12, 16);
  const planes = fc.tuple(fc.constantFrom(1, 3, 5), fc.constantFrom(3, 64, 90, 150), fc.constantFrom(3, 70, 128, 200));
  check(
    fc.property(sizes, planes, permutations(3), permutations(3), (itemsize, shape, toOrder, fromOrder) => {
      const strides = (order: readonly number[]) => {
        const all = shape.map(() => 0);
        order.reduce((stride, axis) => (all[axis] = stride) * (shape[axis] ?? NaN), itemsize);
        return all;
      };
      const [to, from] = [strides(toOrder), strides(fromOrder)];
      const plan = planHostCopy(
        shape.map((extent, i) => ({ extent, to: to[i] ?? NaN, from: from[i] ?? NaN })),
        itemsize,
      );
      const { fetched, lines } = fetches(plan, 256);
      // Tiles of single bytes use half a line at a time; without tiles a line is fetched up to 64 times.
      assert(fetched <= 2.5 * lines, `${fetched} fetches of ${lines} lines`);
    }),
    60,
  );
});

test("rows are long: no short axis is the innermost one beside a long one", () => {
  const narrow = fc.record({
    short: fc.integer({ min: 2, max: 7 }),
    long: fc.integer({ min: 30, max: 5000 }),
    turned: fc.boolean(),
    gap: fc.integer({ min: 2, max: 5 }),
  });
  check(
    fc.property(narrow, fc.constantFrom(1, 2, 4, 8), ({ short, long, turned, gap }, itemsize) => {
      // (long, short) in C order, from a source that is transposed or has gaps.
      const axes: MoveAxis[] = [
        { extent: long, to: short * itemsize, from: turned ? itemsize : short * gap * itemsize },
        { extent: short, to: itemsize, from: turned ? long * itemsize : gap * itemsize },
      ];
      const { moves } = planHostCopy(axes, itemsize);
      const pieces = moves.map(({ axes }) => axes.reduce((count, { extent }) => count * extent, 1));
      const rows = moves.map(({ axes }, i) => (pieces[i] ?? NaN) / (axes.at(-1)?.extent ?? 1));
      const sum = (all: number[]) => all.reduce((one, other) => one + other, 0);
      assert(sum(pieces) / sum(rows) >= Math.min(long / 2, 15), `${sum(pieces)} pieces in ${sum(rows)} rows`);
    }),
    300,
  );
});

test("plans for layouts that programs use", () => {
  const plan = (...axes: [extent: number, to: number, from: number][]) =>
    planHostCopy(axes.map(([extent, to, from]) => ({ extent, to, from })), 4);
  // A transpose is moved in tiles of 16 x 64, and the remainders at the ends apart.
  assertEquals(plan([100, 400, 4], [100, 4, 400]).tile, [16, 64]);
  assertEquals(plan([100, 400, 4], [100, 4, 400]).moves.length, 4);
  assertEquals(plan([64, 256, 4], [64, 4, 256]).moves.length, 1);
  // Three interleaved planes are moved one tile's worth of elements at a time.
  assertEquals(plan([5000, 12, 4], [3, 4, 20000]).tile, [3, 341]);
  // Rows that use whole lines need no tiles.
  assertEquals(plan([16, 8192, 256], [32, 256, 4096], [64, 4, 4]).tile, null);
  // Rows are moved by 16 bytes, all their ends afterwards; very long rows, and a single one, by memcpy.
  const piecesOfRows = (rows: number, floats: number) =>
    plan([rows, 8 * floats, 4 * floats + 400], [floats, 4, 4]).moves.map(({ bytes }) => bytes);
  assertEquals(piecesOfRows(8, 64), [16]);
  assertEquals(piecesOfRows(8, 1009), [16, 16]);
  assertEquals(piecesOfRows(8, 20000), [80000]);
  assertEquals(piecesOfRows(1, 64), [16]);
  assertEquals(piecesOfRows(1, 1000), [4000]);
  // A repeated element is read once, and written 16 bytes at a time.
  assertEquals(plan([7, 4, 0]).moves.map(({ bytes, element }) => [bytes, element]), [[16, 4], [16, 4]]);
});

test("long runs of more bytes than a cache would keep bypass the caches, and no others do", () => {
  const isFar = (extent: number, rows = 1) =>
    planHostCopy([{ extent: rows, to: extent, from: 2 * extent }, { extent, to: 1, from: 1 }], 1).moves
      .map((move) => move.isFar ?? false);
  assertEquals(isFar(2 ** 24), [true]);
  assertEquals(isFar(2 ** 24 - 1), [false]);
  assertEquals(isFar(2 ** 20, 16), [true]);
  assertEquals(isFar(2 ** 20, 15), [false]);
  assertEquals(isFar(2 ** 13, 2 ** 11), [true]);
  assertEquals(isFar(2 ** 13, 2 ** 10), [false]); // by instructions, as all below
  assertEquals(isFar(2 ** 12, 2 ** 12), [false]);
});
