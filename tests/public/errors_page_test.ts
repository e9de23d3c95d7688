/** docs/errors.md lists exactly the error classes that programs can import, and where from. */
import { assert, assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { publicValues } from "./values.ts";

const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");

/** The rows of the page's second table: a class, and where programs can import it from according to the page. */
const written = new Map(
  [...page.slice(page.indexOf("## Causeway's classes")).matchAll(/^\| `(\w+)` +\| ([^|]*)\|/gm)].map((
    [, name = "", from = ""],
  ) => [name, from.trim().split(/, /).map((one) => one === "the root" ? "." : one.replaceAll(/[`./]/g, ""))]),
);

test("every exported class of error is on the page, and every one of the page is exported where it says", async () => {
  const exported = new Map<string, string[]>();
  for (const { subpath, name, value } of await publicValues()) {
    if (typeof value !== "function" || !(value.prototype instanceof Error)) continue;
    exported.set(name, [...exported.get(name) ?? [], subpath]);
  }
  assert(exported.size > 10);
  assertEquals([...written.keys()].sort(), [...exported.keys()].sort());
  for (const [name, subpaths] of written) {
    for (const subpath of subpaths) {
      assert(exported.get(name)?.includes(subpath), `${name} is not exported by ${subpath}`);
    }
  }
});
