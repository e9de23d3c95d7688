/** Releasing several resources does not stop at the first error. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { failuresOf, runAll, throwFirst } from "../../src/ffi/run_all.ts";
import { check, fc } from "../support/property.ts";

function thrownBy(work: () => void): unknown {
  try {
    work();
    return "nothing";
  } catch (error) {
    return error;
  }
}

test("all functions are called in order, whichever fail; the first error is thrown, even if it is undefined", () => {
  const outcomes = fc.array(fc.option(fc.constantFrom(undefined, null, 0, "error"), { nil: "passes" }));
  check(
    fc.property(outcomes, (each) => {
      const work = (index: number, seen: number[]) => {
        seen.push(index);
        if (each[index] !== "passes") throw each[index];
      };
      const errors = each.filter((one) => one !== "passes");
      const [byItem, byFunction]: number[][] = [[], []];
      assertEquals(failuresOf(each.keys(), (index) => work(index, byItem as number[])), errors);
      const expected = errors.length === 0 ? "nothing" : errors[0];
      assertEquals(thrownBy(() => runAll(each.map((_, index) => () => work(index, byFunction as number[])))), expected);
      assertEquals([byItem, byFunction], [[...each.keys()], [...each.keys()]]);
      assertEquals(thrownBy(() => throwFirst(errors)), expected);
    }),
  );
});
