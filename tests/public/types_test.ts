/**
 * What programs may write, to the compiler: right uses compile without a cast, and uses that can only fail do not. What
 * it knows of dtypes is in `view/types_test.ts`. Most of this is compiled only.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import type { PyObject } from "../../mod.ts";

/** Takes programs that are compiled, and not run. */
function compiled(...programs: readonly ((...args: never[]) => unknown)[]): void {
  assertEquals(programs.every((program) => typeof program === "function"), true);
}

test("what comes out of a Python object in a loop can be used as what its attributes are", () => {
  compiled(
    (loader: PyObject) => Array.from(loader, ([images, labels]) => images.sum() + labels.sum()),
    async (loader: PyObject) => {
      for await (const batch of loader) batch.images.sum();
    },
  );
});
