/**
 * Reads attributes where JavaScript's stack ends, at many distances from its end. Prints how many reads succeeded.
 *
 * @module
 */
import { Python } from "../../mod.ts";
import type { PyObject } from "../../src/python/mod.ts";

const python = Python.open();
const list: PyObject = python.evaluate("[1]");
let count = 0;
const down = (): number => {
  void list["append"];
  count++;
  return down() + 1;
};
const padded = (depth: number): number => depth === 0 ? down() : padded(depth - 1) + 1;
for (let depth = 0; depth < 120; depth++) {
  try {
    padded(depth);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  if (python.evaluate("1 + 1") !== 2) throw new Error("a wrong sum");
}
console.log(JSON.stringify({ count }));
