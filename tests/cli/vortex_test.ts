/** What `causeway vortex` reports about a file is in the file. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { describeVortex, type LayoutReport, type VortexReport } from "../../src/cli/vortex.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const run = "deno" in process.versions ? ["run", "-A", main] : [main];
const path = (version: string) =>
  fileURLToPath(new URL(`../data/vortex/written_by_${version}.vortex`, import.meta.url));

function causeway(...args: string[]) {
  return spawnSync(process.execPath, [...run, "vortex", ...args], { encoding: "utf8" });
}

for (const version of ["0.40", "0.54", "0.76", "0.93"]) {
  test(`a file that PyVortex ${version} wrote: columns, encodings, bounds, first rows`, async () => {
    const file = path(version);
    const { report, text } = await describeVortex(file);
    assertEquals([report.rows, report.bytes], [9000, statSync(file).size]);
    const columns = new Map(report.columns.map((column) => [column.name, column]));
    const few = columns.get("few");
    assertEquals([few?.dtype, few?.min, few?.max, few?.nulls], ["i32?", 0, 99, 1800]);
    assert(few?.encodings.some((one) => one.startsWith("fastlanes.bitpacked")), few?.encodings.join());
    assertEquals(columns.get("word")?.min, "one");
    assertEquals(columns.get("odd")?.max, 4499.5);
    assertEquals(report.columns.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0), report.layout.bytes);
    assertEquals(report.firstRows.length, 5);
    const [, second] = report.firstRows as { row: number; url: string; money: string; pair: unknown }[];
    assertEquals([second?.row, second?.url, second?.money, second?.pair], [
      1,
      "https://example.org/1/0",
      "0.25",
      { a: 1, b: "1" },
    ]);
    for (const { name, dtype } of report.columns) assertMatch(text, new RegExp(`^${name} +${dtype.slice(0, 3)}`, "m"));
    assertStringIncludes(text, "root: struct, 9000 rows");
    assertStringIncludes(text, "zones of 8192 rows");
  });
}

test("parts have the bytes of what they consist of, and each segment's encodings are listed", async () => {
  const { report } = await describeVortex(path("0.93"));
  const look = ({ kind, bytes, encodings, children, name }: LayoutReport): void => {
    if (kind === "flat") assert(encodings !== undefined && bytes > 0, name);
    else assertEquals(bytes, children.reduce((sum, child) => sum + child.bytes, 0), name);
    children.forEach(look);
  };
  look(report.layout);
});

test("the command prints a table, or JSON of the same", async () => {
  const { report, text } = await describeVortex(path("0.76"));
  const plain = causeway(path("0.76"));
  assertEquals([plain.status, plain.stderr, plain.stdout], [0, "", `${text}\n`]);
  const json = causeway("--json", path("0.76"));
  assertEquals([json.status, JSON.parse(json.stdout) as VortexReport], [0, report]);
});

test("a file that is not Vortex is one line and exit code 2", () => {
  for (const file of [main, "/nonexistent.vortex", fileURLToPath(new URL(".", import.meta.url))]) {
    const { status, stdout, stderr } = causeway(file);
    assertEquals([status, stdout], [2, ""]);
    assertMatch(stderr, /^causeway: .*\n$/);
  }
  for (const args of [[], ["a", "b"], ["--jso", main]]) {
    const { status, stderr } = causeway(...args);
    assertEquals(status, 2);
    assertStringIncludes(stderr, "causeway vortex --help lists the options.");
  }
});
