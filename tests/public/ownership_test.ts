/** Ownership after each call: every row of the table in docs/memory.md is run, and every row that is run is in it. */
import { assert, assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { liveExports } from "../../mod.ts";
import { patiently } from "../support/child.ts";
import { collectGarbage } from "../support/collect.ts";
import { needs } from "../support/needs.ts";
import { arrayRows } from "./ownership/arrays.ts";
import { elsewhereRows } from "./ownership/elsewhere.ts";
import { memoryRows } from "./ownership/memory.ts";
import type { OwnershipRow } from "./ownership/row.ts";

const page = readFileSync(new URL("../../docs/memory.md", import.meta.url), "utf8");
const table = page.slice(page.indexOf("## Who owns what"));
const written = new Map(
  table.split("\n").filter((line) => /^\| `|^\| .*` of Python/.test(line)).map((line) => {
    const cells = line.split(" | ").map((cell) => cell.replace(/^\|/, "").replace(/\|$/, "").trim());
    return [cells[0] ?? "", /^\w+/.exec(cells.at(-1) ?? "")?.[0] ?? ""];
  }),
);
const rows: Readonly<Record<string, OwnershipRow>> = { ...memoryRows, ...arrayRows, ...elsewhereRows };

test("the page has the rows that are run, and no other", () => {
  assertEquals([...written.keys()], Object.keys(rows));
});

/** How many objects are dropped. The collector may keep the last: the stack may still reference it. */
const count = 12;

/** How many objects have ended, once the collector has had time for `due` of them, or to show that none ends. */
async function endedOf(ended: () => number, due: number): Promise<number> {
  for (let round = 0; round < (due === 0 ? 3 : 2) || (ended() < due && round < 60); round++) {
    await collectGarbage();
    liveExports(); // reading it reclaims what was released
  }
  return ended();
}

for (const [call, row] of Object.entries(rows)) {
  const [title, { skip }] = needs(row.missing ?? null, `${call}: ends as the page says`);
  test(title, { skip, ...patiently }, () => row.ends());

  const word = written.get(call) ?? "";
  const [dropped] = needs(row.missing ?? null, `${call}: if the result is dropped: ${word}`);
  test(dropped, { skip, ...patiently }, async () => {
    assert(["freed", "returned", "lost", "nothing"].includes(word), word);
    assertEquals(row.drop === undefined, word === "nothing");
    if (row.drop === undefined) return;
    await using stack = new AsyncDisposableStack();
    const { once, ended, last } = await row.drop(stack);
    for (let i = 0; i < count; i++) await once();
    if (word === "lost") return assertEquals(await endedOf(ended, 0), 0);
    await last?.();
    const got = await endedOf(ended, count - 2);
    assert(got >= count - 2 && got <= count, `${got} of ${count} have ended`);
  });
}
