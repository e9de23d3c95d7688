/** Every entry of the list of mutations still applies to the code, and every marker in the code belongs to an entry. */
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { mutations } from "./mutations.ts";
import { markers, markersOf, mutate } from "./mutations/mutation.ts";

const cache = new Map<string, string>();

function read(path: string): string {
  return cache.getOrInsertComputed(path, () => readFileSync(new URL(`../${path}`, import.meta.url), "utf8"));
}

test("the text of every mutation is found once behind its marker, and the tests that must notice exist", () => {
  const seen = new Set<string>();
  const stale: string[] = [];
  const twice: string[] = [];
  for (const mutation of mutations) {
    const { label, file, text, becomes, tests, why } = mutation;
    const entry = `${label}: ${text}`;
    if (file === "" || mutate(read(file), mutation) === null) stale.push(entry);
    assertNotEquals(text, becomes, entry);
    assert(/^[A-Z].*\.$/s.test(why), `${entry}: "${why}" is not a sentence`);
    for (const path of tests) assert(existsSync(new URL(`../${path}`, import.meta.url)), `${entry}: no ${path}`);
    if (seen.has(`${entry} becomes ${becomes}`)) twice.push(entry);
    seen.add(`${entry} becomes ${becomes}`);
  }
  assertEquals({ stale, twice }, { stale: [], twice: [] }, "not found exactly once, or listed twice");
  assert(seen.size >= 1000, `${seen.size} mutations are too few`);
});

test("every marker in the sources is there once, names a test, and has a mutation", () => {
  const used = new Set(mutations.map(({ label }) => label));
  const wrong = [...markers].filter(([label, found]) =>
    found.length !== 1 || found[0]?.tests.length === 0 || !used.has(label)
  );
  assertEquals(wrong.map(([label]) => label), []);
});

test("the mutations of a room are in its file, and one that is long has another for a folder or a part of it", () => {
  const lists = new URL("mutations/", import.meta.url);
  for (const name of readdirSync(lists).filter((name) => name !== "mutation.ts")) {
    const room = name.replace(/(_.*)?\.ts$/, "");
    const labels = [...readFileSync(new URL(name, lists), "utf8").matchAll(/\.\.\.law\("(.*?)"/g)].map(([, label]) =>
      label
    );
    const files = labels.map((label) => markers.get(label ?? "")?.[0]?.file ?? "");
    // UCX's own machine code is with what it is for.
    const rooms = room === "ucx" ? ["ucx", "native"] : [room];
    assertEquals(files.filter((file) => !rooms.some((one) => file.startsWith(`src/${one}/`))), [], name);
  }
});

test("a mutation replaces its text once, behind its marker and before the next one", () => {
  const source = "b\n// law one: x/a, x/b,\n//   x/c\nabc\n// law two: x/a\nabcb\n";
  assertEquals(markersOf(source).map(({ label, tests }) => [label, tests.length]), [["one", 3], ["two", 1]]);
  const becomes = (label: string, text: string) => mutate(source, { label, text, becomes: "x" });
  assertEquals(becomes("one", "b"), source.replace("abc\n", "axc\n"));
  assertEquals(becomes("one", "d"), null);
  assertEquals(becomes("two", "b"), null);
  assertEquals(becomes("three", "b"), null);
});
