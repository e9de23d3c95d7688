/** The guides' examples with torch, PyArrow and apache-arrow run, and print what they say. */
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { patiently } from "../support/child.ts";
import { examplesOf, runExample } from "../support/examples.ts";
import { needs } from "../support/needs.ts";
import { findPython, findPythonOrSystem } from "../support/python.ts";

/** The pages with such examples, by what they need. */
const pages = {
  torch: ["README.md", "docs/arrays.md", "docs/python.md"],
  pyarrow: ["docs/arrow.md"],
} as const;

for (const [library, files] of Object.entries(pages)) {
  const found = library === "torch" ? findPythonOrSystem("torch") : findPython("pyarrow");
  for (const file of files) {
    for (const example of examplesOf(file, readFileSync(new URL(`../../${file}`, import.meta.url), "utf8"), library)) {
      const missing = typeof found === "string" ? found : null;
      const [title, options] = needs(missing, `${example.name} (${library}): prints what it says`);
      test(title, { ...options, ...patiently }, () => {
        const env = { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable };
        runExample(example, library === "torch" ? { ...env, VIRTUAL_ENV: undefined } : env);
      });
    }
  }
}

for (
  const example of examplesOf(
    "docs/arrow.md",
    readFileSync(new URL("../../docs/arrow.md", import.meta.url), "utf8"),
    "npm",
  )
) {
  test(`${example.name} (apache-arrow): prints what it says`, () => runExample(example, {}, ["--allow-read"]));
}
