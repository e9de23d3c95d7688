/** Comments are as narrow as code, which the formatter sees to; it leaves comments as they are. */
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const width = 120; // `lineWidth` in deno.json
const folders = ["src", "bindings", "tests", "tools", "bench", "examples"];

/** Lines that are only a comment, and too long: `path:line`. A line of code may be longer, if it has a long string. */
function tooLong(path: string, text: string): string[] {
  const comment = path.endsWith(".ts") ? /^\s*(\/\/|\/?\*)/ : /^\s*#/;
  return text.split("\n").flatMap((line, index) =>
    line.length > width && comment.test(line) ? [`${path}:${index + 1}`] : []
  );
}

test("no line of a comment is longer than a line of code may be", () => {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(ts|py|sh)$/.test(name))
      .map((name) => join(folder, name))
  );
  assert(files.length > 900, `${files.length} files`);
  assertEquals(files.flatMap((path) => tooLong(path, readFileSync(join(root, path), "utf8"))), []);
});

test("a comment that is too long is found, and a long string is none", () => {
  const long = "x".repeat(width);
  for (const start of ["// ", "  // ", "/** ", " * "]) {
    assertEquals(tooLong("a.ts", `f();\n${start}${long}`), ["a.ts:2"], start);
    assertEquals(tooLong("a.ts", `${start}${long}`.slice(0, width)), [], start);
  }
  assertEquals(tooLong("a.py", `# ${long}`), ["a.py:1"]);
  assertEquals(tooLong("a.ts", `f("${long}");`), []);
});
