/**
 * The answers of cuda.core's StridedLayout, row by row: the parametrisations of its own tests with the values it gave.
 *
 * Every row holds, or is one of the deliberate differences named here.
 */
import { assert, assertEquals, assertExists, assertGreaterOrEqual, assertNotEquals, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { slice, type SliceItem, StridedLayout } from "../../src/layout/mod.ts";

interface Bounds {
  start: number | null;
  stop: number | null;
  step: number | null;
}

type Item = number | string | Bounds;

interface Row {
  test: string;
  shape: number[];
  itemsize: number;
  order: "C" | "F" | "implicit_c" | number[];
  perm: number[] | null;
  slices: (Item | Item[])[] | null;
  op: string;
  args: {
    shape?: number[];
    order?: "K" | "C" | "F" | number[];
    axes?: number | number[];
    range?: number[] | null;
    mask?: string;
    perm?: number[];
    itemsize?: number;
    axis?: number;
    maxCompatibleItemsize?: number;
  };
  out?: Record<string, unknown>;
  error?: string;
  message?: string;
}

const rows: Row[] = readFileSync(new URL("../data/strided_layout_facts.jsonl", import.meta.url), "utf8")
  .trimEnd().split("\n").map((line) => JSON.parse(line));

function itemsOf(step: Item | Item[]): SliceItem[] {
  return (Array.isArray(step) ? step : [step]).map((item) => {
    // One row passes the string "abc", which the type refuses: it must arrive unchanged to be refused.
    if (typeof item === "string") return item as "...";
    return typeof item === "number" ? item : slice(item.start, item.stop, item.step);
  });
}

function base(row: Row): StridedLayout {
  let layout = row.order === "implicit_c"
    ? new StridedLayout(row.shape, null, row.itemsize)
    : StridedLayout.dense(row.shape, row.itemsize, row.order);
  if (row.perm !== null && row.op !== "permuted") layout = layout.permuted(row.perm);
  for (const step of row.slices ?? []) layout = layout.sliced(...itemsOf(step));
  return layout;
}

function answer(row: Row): StridedLayout {
  const { shape = [], order = "K", axes = [], range = null, mask, perm = [], itemsize = 0, axis = -1 } = row.args;
  const layout = base(row);
  switch (row.op) {
    case "construct":
    case "sliced":
      return layout;
    case "broadcastTo":
      return layout.broadcastTo(shape);
    case "flattened": {
      if (mask !== undefined) return layout.flattened({ mask: BigInt(mask) });
      const [start = 0, end = -1] = range ?? [];
      return layout.flattened({ start, end });
    }
    case "permuted":
      return layout.permuted(perm);
    case "repacked":
      return layout.repacked(itemsize, { axis });
    case "reshaped":
      return layout.reshaped(shape);
    case "squeezed":
      return layout.squeezed();
    case "toDense":
      return layout.toDense(order);
    case "unsqueezed":
      return layout.unsqueezed(axes);
    default:
      throw new Error(`Expected an operation of StridedLayout, got ${row.op}`);
  }
}

function describe(layout: StridedLayout): Record<string, unknown> {
  return {
    shape: layout.shape,
    strides: layout.strides,
    itemsize: layout.itemsize,
    sliceOffset: layout.sliceOffset,
    stridesInBytes: layout.stridesInBytes,
    strideOrder: layout.strideOrder,
    volume: layout.volume,
    isUnique: layout.isUnique,
    isContiguousC: layout.isContiguousC,
    isContiguousF: layout.isContiguousF,
    isContiguousAny: layout.isContiguousAny,
    isDense: layout.isDense,
    offsetBounds: layout.offsetBounds,
    requiredSizeInBytes: layout.minOffset < 0 ? null : layout.requiredSizeInBytes(),
    flattenedAxisMask: `0x${layout.flattenedAxisMask().toString(16)}`,
  };
}

/** The rows, by number in the file, whose answer differs on purpose. All others must match exactly. */
const DIFFERENCES: { reason: string; rows: number[]; instead(row: Row, number: number): void }[] = [
  {
    // In cuda.core the strides of an implicit layout are null, and it does not equal the same layout with explicit
    // strides.
    reason: "strides are always explicit, and implicit C order equals explicit C order",
    // deno-fmt-ignore
    rows: [
      95, 438, 439, 440, 450, 451, 452, 462, 463, 464, 499, 501, 599, 611,
    ],
    instead(row, number) {
      const layout = answer(row);
      const explicit = StridedLayout.dense(layout.shape, layout.itemsize);
      assert(layout.equals(explicit), `row ${number}`);
      assertEquals(row.out?.["strides"], null);
      const { strides, stridesInBytes } = layout;
      assertEquals(describe(layout), { ...row.out, strides, stridesInBytes });
    },
  },
  {
    // In cuda.core an axis of extent 1 separates its neighbours unless its stride happens to continue theirs.
    reason: "axes of extent 1 are free: they join with any neighbour, and their neighbours join across them",
    // deno-fmt-ignore
    rows: [
      103, 104, 105, 106, 107, 110, 143, 144, 145, 147, 148, 152, 155, 156, 157, 168, 169, 170, 171, 172, 173, 174,
      175, 176, 406, 555, 558, 560, 563, 565, 566, 568, 625, 626, 627, 630, 631, 632, 634, 635, 636, 637, 638, 639,
      640, 641, 642, 646, 647, 648, 651, 652, 653, 655, 656, 657, 658, 659, 660, 661, 662, 663, 667, 668, 669, 672,
      673, 674, 676, 677, 678, 679, 680, 681, 682, 683, 684,
    ],
    instead(row, number) {
      const layout = answer(row);
      const theirs = row.out?.["flattenedAxisMask"];
      const ours = layout.flattenedAxisMask();
      assert(layout.shape.includes(1), `row ${number}`);
      assertNotEquals(`0x${ours.toString(16)}`, theirs);
      assertGreaterOrEqual(joins(ours), joins(BigInt(String(theirs))));
      assertEquals({ ...describe(layout), flattenedAxisMask: theirs }, row.out);
      // The mask can be applied; the property tests' oracle shows that every such flattening is right.
      assertEquals(layout.flattened({ mask: ours }).ndim, layout.ndim - joins(ours));
    },
  },
];

function joins(mask: bigint): number {
  return mask.toString(2).replaceAll("0", "").length;
}

test("the file has all 686 rows", () => {
  assertEquals(rows.length, 686);
});

for (const { reason, rows: numbers, instead } of DIFFERENCES) {
  test(`differs from cuda.core in ${numbers.length} rows: ${reason}`, () => {
    for (const number of numbers) {
      const row = rows[number];
      assertExists(row);
      instead(row, number);
    }
  });
}

test("every other row holds", () => {
  const different = new Set(DIFFERENCES.flatMap((difference) => difference.rows));
  for (const [number, row] of rows.entries()) {
    if (different.has(number)) continue;
    if (row.error === undefined) assertEquals(describe(answer(row)), row.out, `row ${number}: ${JSON.stringify(row)}`);
    else assertThrows(() => answer(row), Error, "", `row ${number}: ${JSON.stringify(row)}`);
  }
});

test("the largest itemsize that each repacked row can have is cuda.core's", () => {
  for (const row of rows) {
    const { maxCompatibleItemsize, axis = -1 } = row.args;
    if (maxCompatibleItemsize === undefined) continue;
    assertEquals(base(row).maxCompatibleItemsize({ axis }), maxCompatibleItemsize, JSON.stringify(row));
  }
});
