/** Links between files lead somewhere: reports are named by their date, and move. */
import { assert, assertEquals } from "@std/assert";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folders = [".", "docs", "bench/results"];
const pages = folders.flatMap((folder) =>
  readdirSync(join(root, folder)).filter((name) => name.endsWith(".md")).map((name) => join(root, folder, name))
);

test("every relative link of a page leads to a file", () => {
  const links = pages.flatMap((page) =>
    Array.from(
      readFileSync(page, "utf8").matchAll(/\]\((?!https?:|#)([^)#\s]+)/g),
      ([, target = ""]) => ({ page, target }),
    )
  );
  assert(links.length > 10, `${links.length} links`);
  const dead = links.filter(({ page, target }) => !existsSync(join(dirname(page), target)));
  assertEquals(dead.map(({ page, target }) => `${relative(root, page)}: ${target}`), []);
});
