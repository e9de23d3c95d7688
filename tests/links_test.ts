/** Links between files resolve: reports are named by their date, and move. */
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

/** The anchor of a heading, as the sites that host repositories make it. */
function anchorOf(heading: string): string {
  return heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
}

// SECURITY.md led to a heading of the README that had moved to a guide.
test("every link to a heading leads to one", () => {
  const dead: string[] = [];
  let links = 0;
  for (const page of pages) {
    for (
      const [, target = "", anchor = ""] of readFileSync(page, "utf8").matchAll(
        /\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)/g,
      )
    ) {
      links++;
      const text = readFileSync(target === "" ? page : join(dirname(page), target), "utf8");
      const anchors = Array.from(text.matchAll(/^#+ (.*)$/gm), ([, heading = ""]) => anchorOf(heading));
      if (!anchors.includes(anchor)) dead.push(`${relative(root, page)}: ${target}#${anchor}`);
    }
  }
  assert(links > 5, `${links} links`);
  assertEquals(dead, []);
});
