/** docs/performance.md claims nothing beyond its reports: each number in a row is in the report that the row links. */
import { assert, assertEquals } from "@std/assert";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const page = fileURLToPath(new URL("../../docs/performance.md", import.meta.url));

/** The rows of the page's tables, split into cells. */
const rows = readFileSync(page, "utf8").split("\n").filter((line) => line.startsWith("| ")).map((line) =>
  line.split("|").slice(1, -1).map((cell) => cell.trim())
).filter(([what]) => what !== "what" && !what?.startsWith("---"));

test("every number of the page is in the report linked beside it, and the report is of the stated day", () => {
  assert(rows.length > 30);
  let count = 0;
  for (const [what = "", measured = "", beside = "", machine = "", command = "", link = ""] of rows) {
    const path = /\((.*)\)/.exec(link)?.[1] ?? "";
    const text = readFileSync(join(dirname(page), path), "utf8");
    for (const [number] of `${measured} ${beside}`.matchAll(/\d+(?:\.\d+)?(?:e\+\d+)?(?![\w.])/g)) {
      assert(
        new RegExp(`(?<![\\d.])${number.replace(/[.+]/g, "\\$&")}(?![\\d.]*\\d)`).test(text),
        `${what}: ${number}`,
      );
      count++;
    }
    assertEquals(/\d{4}-\d\d-\d\d/.exec(machine)?.[0], /\d{4}-\d\d-\d\d/.exec(path)?.[0], what);
    const bench = /bench[ /](\w+)/.exec(command)?.[1];
    if (bench !== undefined) assert(existsSync(join(dirname(page), `../bench/${bench}.ts`)), command);
  }
  assert(count > 100, `${count} numbers`);
});
