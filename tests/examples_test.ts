/** Every example in the README and in doc comments runs, and prints what its comments say. */
import { assert } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { libnvrtc } from "../src/driver/mod.ts";
import { comments, examplesOf, runExample } from "./support/examples.ts";
import { missing } from "./support/missing_library.ts";
import { needs } from "./support/needs.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !file.startsWith("layout")) // the layout room runs its own
  .map((file) => join(root, "src", file));
/** Pages of examples that need nothing but the package; those of layouts are run in their room. */
const pages = [
  "README.md",
  ...readdirSync(join(root, "docs")).filter((file) => file.endsWith(".md") && file !== "layout.md").map((file) =>
    `docs/${file}`
  ),
];
const examples = [
  ...pages.flatMap((file) => examplesOf(file, readFileSync(join(root, file), "utf8"))),
  ...[join(root, "mod.ts"), ...sources].flatMap((file) =>
    examplesOf(relative(root, file), comments(readFileSync(file, "utf8")))
  ),
];

/** Pages whose marked examples are run, and by which test, if not by this one. */
const marked: { readonly [mark: string]: readonly string[] } = {
  files: ["docs/files.md", "docs/vortex.md", "docs/workers.md"],
  nvrtc: ["docs/kernels.md"],
  cell: ["docs/notebooks.md"], // tests/peers/notebook_test.ts
  torch: ["README.md", "docs/arrays.md", "docs/python.md"], // tests/peers/guides_test.ts
  pyarrow: ["docs/arrow.md", "docs/python.md"], // the same, and tests/python/arrow_capsules_test.ts
  npm: ["docs/arrow.md"], // tests/peers/guides_test.ts
  numpy: ["docs/python.md"], // tests/python/export_array_test.ts
  python: ["docs/python.md"], // tests/python/frame_test.ts
  server: ["docs/ucx.md"], // tests/ucx/guide_test.ts
  client: ["docs/ucx.md"],
  ucxx: ["docs/ucx.md"],
  polars: ["docs/vortex.md"], // tests/vortex/file/docs_test.ts
  duckdb: ["docs/vortex.md"],
  pyvortex: ["docs/vortex.md"],
  http: ["docs/vortex.md"],
  deno: ["docs/c-libraries.md"],
  bun: ["docs/c-libraries.md"],
  cublas: ["docs/c-libraries.md"], // tests/gpu/examples_test.ts
};

test("every block of code of a page is run by some test", () => {
  for (const file of [...pages, "docs/layout.md"]) {
    for (const [, mark = ""] of readFileSync(join(root, file), "utf8").matchAll(/^```ts ?(.*)$/gm)) {
      assert(mark === "" || marked[mark]?.includes(file), `${file} has an example marked ${mark}, which no test runs`);
    }
  }
});

test("there are examples to run", () => {
  assert(examples.filter(({ name }) => name.startsWith("README.md")).length >= 2);
  assert(examples.some(({ name }) => name.startsWith("mod.ts")));
});

/** Examples that read files of the repository. */
const reading = [
  ...["docs/files.md", "docs/vortex.md", "docs/workers.md"].flatMap((file) =>
    examplesOf(file, readFileSync(join(root, file), "utf8"), "files")
  ),
  ...sources.filter((file) => file.includes("/src/files/")).flatMap((file) =>
    examplesOf(relative(root, file), comments(readFileSync(file, "utf8")), "files")
  ),
];

/** Examples that call C by the runtime's own functions. */
const calling = examplesOf(
  "docs/c-libraries.md",
  readFileSync(join(root, "docs/c-libraries.md"), "utf8"),
  "deno" in process.versions ? "deno" : "bun",
);

test("there are examples that read files", () => assert(reading.length >= 3));

/** Examples that compile CUDA C++. */
const compiling = examplesOf("docs/kernels.md, nvrtc", readFileSync(join(root, "docs/kernels.md"), "utf8"), "nvrtc");

test("there are examples that compile", () => assert(compiling.length >= 2));

for (const example of compiling) {
  const [title, { skip }] = needs(missing(libnvrtc), `${example.name}: runs and prints what it says`);
  test(title, { skip }, () => runExample(example, { CAUSEWAY_CACHE: "off" }));
}

for (const example of reading) {
  test(`${example.name}: runs and prints what it says`, () =>
    runExample(example, {}, ["--allow-read", "--allow-write=/tmp"]));
}

for (const example of [...examples, ...calling]) {
  test(`${example.name}: runs and prints what it says`, () => runExample(example));
}
