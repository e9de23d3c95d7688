/** Every entry of the list of mutations still applies to the code, and says something. */
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { mutations } from "./mutations.ts";
import { mutate } from "./mutations/mutation.ts";

function read(path: string): string {
  return readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
}

test("the text of every mutation is found exactly once, and the tests that must notice exist", () => {
  const seen = new Set<string>();
  const stale: string[] = [];
  const twice: string[] = [];
  for (const mutation of mutations) {
    const { file, text, becomes, tests, why } = mutation;
    const entry = `${file}: ${text}`;
    if (mutate(read(file), mutation) === null) stale.push(entry);
    assertNotEquals(text, becomes, entry);
    assert(/^[A-Z].*\.$/s.test(why), `${entry}: "${why}" is no sentence`);
    assert(tests.length > 0, entry);
    for (const path of tests) assert(existsSync(new URL(`../${path}`, import.meta.url)), `${entry}: no ${path}`);
    if (seen.has(`${entry} becomes ${becomes}`)) twice.push(entry);
    seen.add(`${entry} becomes ${becomes}`);
  }
  assertEquals({ stale, twice }, { stale: [], twice: [] }, "not found exactly once, or listed twice");
  assert(seen.size >= 80, `${seen.size} mutations are too few`);
});

test("a mutation replaces its text once, and is refused where the text is missing or not alone", () => {
  const mutation = { file: "", text: "b", becomes: "x", tests: [], why: "" };
  assertEquals(mutate("abc", mutation), "axc");
  assertEquals(mutate("ac", mutation), null);
  assertEquals(mutate("abcb", mutation), null);
});
