/**
 * The public API: its names, each a decision, and the rooms loaded for them. A subpath works alone, in a process that
 * has imported nothing else, and loads only the rooms below it.
 */
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { patiently, runScriptForJson } from "../support/child.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const child = new URL("./loaded_child.ts", import.meta.url);
const read = (path: string): string => readFileSync(join(root, path), "utf8");

/** Types are marked as such: `type CudaProbe`. */
const publicNames: Readonly<Record<string, readonly string[]>> = JSON.parse(read("tests/data/public_names.json"));

const core = ["bindings", "device", "driver", "ffi", "layout", "native", "unix"];
const arrays = [...core, "copy", "memory", "order", "wasm"];

/** The rooms that each subpath loads. */
const loads: Readonly<Record<string, readonly string[]>> = {
  layout: ["layout"],
  checker: ["bindings", "checker", "driver", "ffi", "layout", "ptx"],
  sim: ["bindings", "driver", "ffi", "layout", "ptx", "sim"],
  sharing: [...core, "memory", "order"],
  cuda: [...core, "checker", "cuda", "memory", "order", "ptx", "sim"],
  dlpack: [...arrays, "dlpack"],
  view: [...arrays, "cdata", "dlpack", "view"],
  files: [...arrays, "cdata", "dlpack", "files", "view"],
  arrow: [...arrays, "arrow", "cdata", "dlpack", "view"],
  python: [...arrays, "arrow", "cdata", "dlpack", "python", "view"],
  ucx: [...arrays, "cdata", "dlpack", "ucx", "view"],
  vortex: [...arrays, "arrow", "cdata", "dlpack", "view", "vortex"],
  testing: [...core.filter((room) => room !== "native"), "checker", "order", "ptx", "sim"],
};

/** The names that a module exports in lists, types marked as such. */
function namesOf(path: string): string[] {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest);
  const names = source.statements.filter(ts.isExportDeclaration).flatMap(({ exportClause, isTypeOnly }) => {
    assert(exportClause !== undefined && ts.isNamedExports(exportClause), `${path}: every name is listed`);
    return exportClause.elements.map((one) => `${isTypeOnly || one.isTypeOnly ? "type " : ""}${one.name.text}`);
  });
  assertEquals(
    source.statements.filter((one) => !ts.isExportDeclaration(one)),
    [],
    `${path} exports and does nothing else`,
  );
  return names.sort();
}

const subpaths = readdirSync(join(root, "src/public")).map((file) => file.slice(0, -".ts".length)).sort();

test("the public names are those that were decided on", () => {
  const found = [".", ...subpaths].map((one) => [one, namesOf(one === "." ? "mod.ts" : `src/public/${one}.ts`)]);
  assertEquals(Object.fromEntries(found), publicNames);
});

test("the architecture page counts the root's names", () => {
  assertEquals(
    /what most programs use: (\d+) names/.exec(read("docs/architecture.md"))?.[1],
    `${publicNames["."]?.length}`,
  );
});

/** package.json's entries for the same subpaths: the files that `tools/pack.ts` makes. Layouts run anywhere, too. */
function packed(entries: Readonly<Record<string, string>>): Record<string, Record<string, string>> {
  return Object.fromEntries(
    Object.entries(entries).map(([subpath, source]) => {
      const name = basename(source, ".ts");
      const deno = ["mod", "cuda"].includes(name) ? "deno/" : ""; // where simulators and checkers are made
      const native = { deno: `./dist/${deno}${name}.js`, node: `./dist/node/${name}.js` };
      return [subpath, {
        types: source.replace("./", "./dist/types/").replace(/\.ts$/, ".d.ts"),
        bun: `./dist/bun/${name}.js`,
        ...(name === "layout" ? {} : native),
        default: `./dist/${name}.js`,
      }];
    }),
  );
}

test("deno.json and package.json offer the package, and each subpath", () => {
  const entries = Object.fromEntries([
    [".", "./mod.ts"],
    ...Object.keys(loads).map((one) => [`./${one}`, `./src/public/${one}.ts`]),
  ]);
  assertEquals(JSON.parse(read("deno.json")).exports, entries);
  assertEquals(JSON.parse(read("package.json")).exports, { ...packed(entries), "./package.json": "./package.json" });
  assertEquals(subpaths, Object.keys(loads).sort());
});

test("all names are on a subpath, too", () => {
  const all = new Set(Object.entries(publicNames).flatMap(([path, names]) => path === "." ? [] : names));
  const alone = (publicNames["."] ?? []).filter((name) => !all.has(name));
  assertEquals(alone, []);
});

for (const [subpath, rooms] of Object.entries(loads)) {
  test(`./${subpath} can be imported by itself, and loads only the rooms below it`, patiently, async () => {
    const loaded = await runScriptForJson(child, { args: [join(root, `src/public/${subpath}.ts`)] });
    const names = (publicNames[subpath] ?? []).filter((name) => !name.startsWith("type "));
    assertEquals(loaded, { names, rooms: [...rooms].sort(), errors: 0 });
  });
}

// V8 parses the whole file again to locate an error constructed at import: 30 ms if all is joined into one file.
test("no error is made while everything is imported", patiently, async () => {
  const loaded = await runScriptForJson(child, { args: [join(root, "mod.ts")] });
  assert(typeof loaded === "object" && loaded !== null && "errors" in loaded);
  assertEquals(loaded.errors, 0);
});

test("a room that is loaded needlessly would be detected", patiently, async () => {
  const loaded = await runScriptForJson(child, { args: [join(root, "mod.ts")] });
  assert(typeof loaded === "object" && loaded !== null && "rooms" in loaded && Array.isArray(loaded.rooms));
  assertEquals(loaded.rooms.filter((room) => ["ucx", "python", "view"].includes(room)), ["python", "ucx", "view"]);
});
