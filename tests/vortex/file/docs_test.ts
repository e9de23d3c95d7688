/**
 * The examples of docs/vortex.md that hand rows to Python libraries, or read over HTTP. tests/examples_test.ts runs the
 * others.
 */
import { assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { patiently } from "../../support/child.ts";
import { examplesOf, runExample, runExampleBeside } from "../../support/examples.ts";
import { needs } from "../../support/needs.ts";
import { findPython } from "../../support/python.ts";
import { serveRanges } from "../../support/range_server.ts";

const guide = readFileSync(new URL("../../../docs/vortex.md", import.meta.url), "utf8");

for (const library of ["polars", "duckdb", "pyvortex"]) {
  const found = findPython(library === "pyvortex" ? "vortex-data" : library, "pyarrow");
  for (const example of examplesOf("docs/vortex.md", guide, library)) {
    const [title, options] = needs(typeof found === "string" ? found : null, `${example.name}: prints what it says`);
    test(title, { ...options, ...patiently }, () => {
      runExample(example, { CAUSEWAY_PYTHON: typeof found === "string" ? "" : found.executable }, ["--allow-read"]);
    });
  }
}

for (const example of examplesOf("docs/vortex.md (http)", guide, "http")) {
  test(`${example.name}: prints what it says`, patiently, async () => {
    await using server = await serveRanges(readFileSync(new URL("../../../examples/trips.vortex", import.meta.url)));
    const code = example.code.replace("https://example.org/trips.vortex", server.url);
    await runExampleBeside({ ...example, code }, {}, ["--allow-net"]);
    assertEquals(server.requests[0]?.headers["authorization"], "Bearer ...");
  });
}
