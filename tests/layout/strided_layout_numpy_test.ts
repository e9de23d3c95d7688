/** Shapes, strides and elements of views against NumPy's: vectors from tests/data/strided_layout_numpy.py. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { slice, type SliceItem, StridedLayout } from "../../src/layout/mod.ts";
import { gridOf } from "../support/strided_oracle.ts";

type Item = number | null | "..." | [start: number | null, stop: number | null, step: number | null];
type Step =
  | [operation: "sliced", items: Item[]]
  | [operation: "permuted" | "reshaped" | "broadcastTo", shape: number[]]
  | [operation: "squeezed"];

interface Line {
  shape: number[];
  order: "C" | "F";
  steps: Step[];
  refused?: true;
  out?: { shape: number[]; strides: number[]; offset: number | null; checksum: number };
}

const lines: Line[] = readFileSync(new URL("../data/strided_layout_numpy.jsonl", import.meta.url), "utf8")
  .trimEnd().split("\n").map((line) => JSON.parse(line));

function apply(layout: StridedLayout, step: Step): StridedLayout {
  switch (step[0]) {
    case "sliced":
      return layout.sliced(...step[1].map((item): SliceItem => Array.isArray(item) ? slice(...item) : item));
    case "permuted":
      return layout.permuted(step[1]);
    case "reshaped":
      return layout.reshaped(step[1]);
    case "broadcastTo":
      return layout.broadcastTo(step[1]);
    case "squeezed":
      return layout.squeezed();
  }
}

function checksum(layout: StridedLayout): number {
  return gridOf(layout).values.reduce((sum, value, place) => sum + (place + 1) * value, 0);
}

test("chains of view operations give NumPy's shapes, strides and elements", () => {
  assert(lines.length >= 1000);
  for (const { shape, order, steps, out } of lines) {
    if (out === undefined) continue;
    const layout = steps.reduce(apply, StridedLayout.dense(shape, 8, order));
    const context = JSON.stringify({ shape, order, steps });
    assertEquals(layout.shape, out.shape, context);
    assertEquals(checksum(layout), out.checksum, context);
    // Unused strides differ: NumPy gives a new axis stride 0, and empty arrays those of others.
    if (layout.volume === 0) continue;
    assertEquals(layout.sliceOffset, out.offset, context);
    const steppedAlong = (strides: readonly number[]) => strides.filter((_, axis) => layout.shape[axis] !== 1);
    assertEquals(steppedAlong(layout.strides), steppedAlong(out.strides), context);
  }
});

test("a reshape that NumPy would have to copy for is refused", () => {
  const refused = lines.filter((line) => line.refused === true);
  assert(refused.length >= 100);
  for (const { shape, order, steps } of refused) {
    const layout = steps.slice(0, -1).reduce(apply, StridedLayout.dense(shape, 8, order));
    const [last] = steps.slice(-1);
    assert(last !== undefined);
    assertThrows(() => apply(layout, last), RangeError, "Cannot reshape", JSON.stringify({ shape, order, steps }));
  }
});
