/**
 * The rooms of the house and who may import whom: an arrow never points up. Types are free to point anywhere, since
 * nothing of them exists at run time.
 */
import { assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Each room, and the rooms or files that it may import from at run time. Its own files are always allowed. */
const arrows: { readonly [room: string]: readonly string[] } = {
  bindings: [],
  ffi: ["bindings"],
  layout: [],
  cuda: ["ffi", "bindings", "layout"],
  sim: ["cuda", "ffi", "bindings", "layout"],
  memory: ["cuda", "ffi", "bindings", "layout"],
  view: ["memory", "cuda", "ffi", "bindings", "layout"],
  exchange: ["view", "memory", "cuda", "ffi", "bindings", "layout"],
  ucx: ["src/exchange/order.ts", "view", "memory", "cuda", "ffi", "bindings", "layout"],
  cli: ["exchange", "ucx", "view", "sim", "memory", "cuda", "ffi", "bindings", "layout"],
};

/** The only room that may import a runtime's own modules: they are slow to load. Others ask `src/ffi/builtin.ts`. */
const mayUseNode: { readonly [room: string]: readonly string[] } = {
  cli: [
    "node:child_process",
    "node:crypto",
    "node:fs",
    "node:path",
    "node:process",
    "node:readline",
    "node:url",
    "node:util",
  ],
};

interface Import {
  readonly file: string;
  readonly room: string;
  readonly target: string;
}

function roomOf(file: string): string {
  const [top = "", second = ""] = relative(root, file).split("/");
  return top === "src" ? second : top;
}

function mayImport(room: string, file: string): boolean {
  const allowed = arrows[room] ?? [];
  return allowed.includes(roomOf(file)) || allowed.includes(relative(root, file));
}

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(root, folder, name));
}

/** The imports that exist at run time: not `import type`, and not lists in which every name is a type. */
function runtimeImports(file: string): Import[] {
  const text = readFileSync(file, "utf8").replace(/\/\*.*?\*\//gs, "").replace(/^\s*\/\/.*$/gm, "");
  const statements = /^(?:import|export)\s+(?!type\s)(?<what>[^;"']*?from\s+)?["'](?<target>[^"']+)["']/gm;
  const dynamic = /(?<!typeof |[.#])\bimport\(\s*["'](?<target>[^"']+)["']\s*\)/g;
  const targets: string[] = [];
  for (const { groups } of text.matchAll(statements)) {
    const names = /\{(?<list>[^}]*)\}/s.exec(groups?.["what"] ?? "")?.groups?.["list"];
    const onlyTypes = names !== undefined &&
      names.split(",").map((name) => name.trim()).filter((name) => name !== "").every((name) => /^type\s/.test(name));
    if (!onlyTypes) targets.push(groups?.["target"] ?? "");
  }
  for (const { groups } of text.matchAll(dynamic)) targets.push(groups?.["target"] ?? "");
  return targets.map((target) => ({ file, room: roomOf(file), target }));
}

const imports = [...sources("bindings"), ...sources("src")].flatMap(runtimeImports);

test("the reader of imports sees all of them", () => {
  // A count from another side: the word `from` or a bare import, in lines that begin an import or end its list.
  const lines = [...sources("bindings"), ...sources("src")].flatMap((file) =>
    readFileSync(file, "utf8").split("\n").filter((line) => /^(import|export|\}).*["'][./\w:@-]+["'];$/.test(line))
  );
  const typesOnly = lines.filter((line) => /^(import|export) type /.test(line)).length;
  assertEquals(imports.length <= lines.length - typesOnly, true);
  assertEquals(imports.length > 100, true, `only ${imports.length} imports found`);
});

test("no room imports from a room above it", () => {
  const wrong = imports
    .filter(({ target }) => target.startsWith("."))
    .map(({ file, room, target }) => ({ file, room, to: join(dirname(file), target) }))
    .filter(({ room, to }) => roomOf(to) !== room && !mayImport(room, to))
    .map(({ file, to }) => `${relative(root, file)} -> ${relative(root, to)}`);
  assertEquals(wrong, []);
});

test("layout and bindings import nothing but their own files, and packages are imported nowhere", () => {
  const wrong = imports
    .filter(({ target }) => !target.startsWith("."))
    .filter(({ room, target }) => !(mayUseNode[room] ?? []).includes(target))
    .map(({ file, target }) => `${relative(root, file)} -> ${target}`);
  assertEquals(wrong, []);
});

test("every room of the house is known here", () => {
  const rooms = [...new Set([...sources("bindings"), ...sources("src")].map(roomOf))].sort();
  assertEquals(rooms.filter((room) => !(room in arrows)), []);
});

test("only the adapters know a runtime by name", () => {
  const knowing = sources("src")
    .filter((file) =>
      /\bDeno\.[a-zA-Z]|\bglobalThis\b|bun:ffi|\bBun\.[a-zA-Z]/.test(stripComments(readFileSync(file, "utf8")))
    )
    .map((file) => relative(root, file));
  assertEquals(knowing.sort(), ["src/ffi/builtin.ts", "src/ffi/bun.ts", "src/ffi/deno.ts"]);
});

function stripComments(text: string): string {
  return text.replace(/\/\*.*?\*\//gs, "").replace(/\/\/.*$/gm, "");
}
