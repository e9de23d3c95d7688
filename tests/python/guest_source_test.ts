/** The module in which the Python files are embedded. */
import { assert, assertEquals, assertMatch, assertThrows } from "@std/assert";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { asPart, embed, guestFolder, guestModule, isUpToDate, writeGuestModule } from "../../tools/embed_python.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the embedded module matches Python's files", () => {
  assert(isUpToDate(root), `${guestModule} is stale: run \`deno task embed\``);
});

test("a file is embedded without its docstring and its relative imports, and otherwise unchanged", () => {
  assertEquals(
    asPart(
      '"""What it is.\n\nAnd why.\n"""\n\nimport a\n\nfrom .b import (\n    c,\n    d,\n)\nfrom .e import f\n\n"""g"""\n',
    ),
    'import a\n\n\n"""g"""\n',
  );
  assertEquals(asPart("def a():\n    from .b import c\n\n    return c\n"), "def a():\n\n    return c\n");
});

test("a module that is stale is noticed, and a file that no source lists is refused", () => {
  const copy = mkdtempSync(join(tmpdir(), "causeway-embed-"));
  try {
    mkdirSync(join(copy, "src/python"), { recursive: true });
    cpSync(join(root, guestFolder), join(copy, guestFolder), { recursive: true });
    assertEquals(isUpToDate(copy), false);
    writeGuestModule(copy);
    assert(isUpToDate(copy));
    const file = join(copy, guestFolder, "conversions.py");
    writeFileSync(file, `${readFileSync(file, "utf8")}text = "\\\\ \`\${a}"\n`);
    assertEquals(isUpToDate(copy), false);
    writeGuestModule(copy);
    const module = join(copy, guestModule);
    const script = `console.log((await import(${JSON.stringify(module)})).guestSource.split("\\n").at(-2))`;
    const printed = execFileSync(process.execPath, evaluating(script), { encoding: "utf8" });
    assertMatch(printed, /^text = "\\\\ `\$\{a\}"$/m);
    writeFileSync(join(copy, guestFolder, "other.py"), "");
    assertThrows(() => embed(copy), Error, "Cannot embed other.py");
  } finally {
    rmSync(copy, { recursive: true });
  }
});

function evaluating(script: string): string[] {
  return process.versions["bun"] === undefined ? ["eval", "--no-lock", script] : ["-e", script];
}
