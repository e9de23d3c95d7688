/**
 * Passes Python containers for which it has no memory, and prints which errors that gives.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { Python, PythonError } from "../../mod.ts";

const python = Python.open();
const length = python.builtins["len"];
python.run("import resource\nlimits = resource.getrlimit(resource.RLIMIT_AS)");
const limit = python.evaluate("lambda most: resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))");
const without = python.evaluate("lambda: resource.setrlimit(resource.RLIMIT_AS, limits)");
const items: unknown[] = [];
items[300_000_000] = 1; // which takes no memory here, and 2.4 GB there

/** Of which much is reserved. */
const used = Number(readFileSync("/proc/self/statm", "utf8").split(" ")[0]) * 4096;
limit(used + 2 ** 30);
const errors = [items, { items }, new Map([["items", items]])].map((value) => {
  try {
    return String(length(value));
  } catch (error) {
    return error instanceof PythonError ? error.message.trim() : String(error);
  }
});
without();
console.log(JSON.stringify(errors));
