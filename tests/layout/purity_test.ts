import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const folder = new URL("../../src/layout/", import.meta.url);
const files = readdirSync(folder).filter((name) => name.endsWith(".ts"));

test("the layout room imports nothing but itself", () => {
  assert(files.length > 10);
  for (const name of files) {
    const source = readFileSync(new URL(name, folder), "utf8");
    const imports = [...source.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(([, specifier = ""]) => specifier)
      // Examples in comments import the package as users do.
      .filter((specifier) => specifier !== "@causeway/causeway/layout");
    for (const specifier of imports) {
      assertEquals(files.includes(specifier.replace("./", "")), true, `${name}: ${specifier}`);
    }
  }
});

test("the layout room names nothing that a browser lacks", () => {
  for (const name of files) {
    // Registry symbols only name a runtime; looking them up does not depend on it.
    const code = readFileSync(new URL(name, folder), "utf8").replaceAll(
      /\/\*[^]*?\*\/|\/\/.*|Symbol\.for\(".*?"\)/g,
      "",
    );
    for (const [word] of code.matchAll(/\b(?:Deno|Bun|process|Buffer|require|global|node)\b(?!\(|<)/g)) {
      throw new Error(`${name} speaks of ${word}`);
    }
  }
});
