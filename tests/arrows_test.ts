/**
 * The rooms of the house and who may import whom. An import points down, at run time and in types alike: what stands
 * above is known to nobody below.
 */
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));

const ground = ["bindings", "layout", "ffi"];

/** Each room, and the rooms that it may import from. Its own files are always allowed. */
const rooms: { readonly [room: string]: readonly string[] } = {
  bindings: [],
  layout: [],
  ffi: ["bindings", "layout"],
  native: ["bindings", "ffi"],
  unix: ["bindings", "layout", "ffi"],

  driver: ["bindings", "ffi"],
  ptx: [],
  sim: [...ground, "driver", "ptx"],
  checker: [...ground, "driver", "ptx"],

  device: [...ground, "unix", "driver"],
  order: [...ground, "native", "driver", "device"],
  memory: [...ground, "native", "unix", "driver", "device", "order"],
  copy: [...ground, "native", "driver", "device", "order", "memory"],
  dlpack: [...ground, "native", "driver", "device", "order", "memory", "copy"],
  cdata: [...ground, "native", "driver", "device", "order", "memory", "copy"],
  view: [...ground, "native", "driver", "device", "order", "memory", "copy", "dlpack", "cdata"],
  arrow: [...ground, "native", "driver", "device", "order", "memory", "copy", "cdata", "view"],
  python: [...ground, "native", "driver", "device", "order", "memory", "copy", "dlpack", "cdata", "view", "arrow"],

  cuda: [...ground, "driver", "sim", "checker", "device", "order", "memory"],
  ucx: [...ground, "native", "unix", "device", "order", "memory", "copy", "view"],
};
/** What programs import (`public/`, `mod.ts`) and the command line use every room. */
const everything = { ...rooms, public: Object.keys(rooms), cli: Object.keys(rooms) };

/** Types that point up, each with its reason. */
const typesUp: { readonly [arrow: string]: string } = {
  "src/device/device.ts -> memory":
    "`CudaDevice.memory` is what a user expects; who makes the device gives it its memory",
};

/** The only room that may import a runtime's own modules: they are slow to load. Others ask ffi's `nodeBuiltin`. */
const mayUseNode: { readonly [room: string]: readonly string[] } = {
  cli: [
    "node:child_process",
    "node:crypto",
    "node:fs",
    "node:path",
    "node:process",
    "node:readline",
    "node:timers/promises",
    "node:url",
    "node:util",
  ],
};

interface Import {
  /** The importing file, from the repository's root. */
  readonly file: string;
  /** The imported file from there, or a package as it is named. */
  readonly target: string;
  /** Nothing of it exists at run time. */
  readonly isType: boolean;
  /** What is imported, by its name there; null for everything. */
  readonly names: readonly string[] | null;
}

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));
}

function roomOf(file: string): string {
  const [top = "", second = ""] = file.split("/");
  return top === "src" ? second : top;
}

/** All imports of a source: declarations, lists that are exported on, types of another module, and dynamic ones. */
function importsOf(file: string, text: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: ts.Node | undefined, isType: boolean, list?: ts.Node) => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return;
    const { text } = specifier;
    const isList = list !== undefined && (ts.isNamedImports(list) || ts.isNamedExports(list));
    const names = isList ? list.elements.map(({ name, propertyName }) => (propertyName ?? name).text) : null;
    found.push({ file, target: text.startsWith(".") ? join(dirname(file), text) : text, isType, names });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      const { importClause } = node;
      const names = importClause?.namedBindings;
      const onlyTypes = names !== undefined && ts.isNamedImports(names) && importClause?.name === undefined &&
        names.elements.every(({ isTypeOnly }) => isTypeOnly);
      add(node.moduleSpecifier, importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword || onlyTypes, names);
    } else if (ts.isExportDeclaration(node)) {
      const names = node.exportClause;
      const onlyTypes = names !== undefined && ts.isNamedExports(names) &&
        names.elements.every(({ isTypeOnly }) => isTypeOnly);
      add(node.moduleSpecifier, node.isTypeOnly || onlyTypes, names);
    } else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
      add(node.argument.literal, true);
    } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      add(node.arguments[0], false);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
  return found;
}

/** What other rooms may import of a room: its door. Headers of C are data, and each file of `bindings/` is one. */
function isDoor(file: string): boolean {
  return file.startsWith("bindings/") || /^src\/\w+\/mod\.ts$/.test(file);
}

/** What is wrong with an import, or null. */
function fault({ file, target, isType }: Import): string | null {
  const [from, to] = [roomOf(file), roomOf(target)];
  if (from === to) return null;
  const arrow = `${file} -> ${isType ? "type " : ""}${target}`;
  if (!/^(src|bindings)\//.test(target)) {
    return (isType && target.startsWith("node:")) || mayUseNode[from]?.includes(target) ? null : arrow;
  }
  if (!isDoor(target)) return `${arrow}, past the door`;
  if (everything[from as keyof typeof everything]?.includes(to)) return null;
  return isType && `${file} -> ${to}` in typesUp ? null : arrow;
}

/** Files that import each other in a circle, each circle once, by its first file. */
function circles(imports: readonly Import[]): string[] {
  const targets = new Map<string, Set<string>>();
  for (const { file, target, isType } of imports) {
    if (!isType) targets.getOrInsertComputed(file, () => new Set()).add(target);
  }
  const found = new Set<string>();
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) found.add([...path.slice(start)].sort().join(" "));
    if (start >= 0 || done.has(file)) return;
    for (const next of targets.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of targets.keys()) visit(file, []);
  return [...found].sort();
}

const files = [...sources("bindings"), ...sources("src")];
const imports = files.flatMap((file) => importsOf(file, readFileSync(join(root, file), "utf8")));

test("all imports are seen: as many as there are lines that end in a path", () => {
  const lines = files.flatMap((file) =>
    readFileSync(join(root, file), "utf8").split("\n").filter((line) =>
      /^(import "|(import|export|\}).* from ")[^"]+";$/.test(line)
    )
  );
  assert(imports.length >= lines.length && lines.length > 900, `${imports.length} of ${lines.length}`);
});

test("every room of the house is known here, and only rooms of the house are", () => {
  assertEquals(new Set(files.map(roomOf)), new Set(Object.keys(everything)));
});

test("no room imports from a room above it, nor past a door, neither code nor types", () => {
  const wrong = [...new Set(imports.map(fault).filter((arrow) => arrow !== null))].sort();
  assertEquals(wrong, []);
});

test("types that point up are few, and they are still needed", () => {
  const used = new Set(
    imports.filter(({ isType }) => isType).map(({ file, target }) => `${file} -> ${roomOf(target)}`),
  );
  assertEquals(Object.keys(typesUp).filter((arrow) => !used.has(arrow)), []);
});

test("every room has a door, which says what the room is and exports exactly what others use", () => {
  const all = [...imports, ...importsOf("mod.ts", readFileSync(join(root, "mod.ts"), "utf8"))];
  for (const room of Object.keys(rooms)) {
    if (room === "bindings") continue;
    const door = `src/${room}/mod.ts`;
    const text = readFileSync(join(root, door), "utf8");
    assert(/^\/\*\*\n(?: \*.*\n){4,24} \* @module\n/.test(text), `${door} does not say what the room is`);
    const exported = importsOf(door, text).flatMap(({ names }) => names ?? []);
    const used = new Set(
      all.filter(({ file, target }) => target === door && roomOf(file) !== room).flatMap(({ names }) =>
        names ?? exported
      ),
    );
    assertEquals(exported.filter((name) => !used.has(name)), [], door);
  }
});

test("an arrow that points up is seen, whichever way it is written", () => {
  const wrong = [
    'import { view } from "../view/mod.ts";',
    'import type { View } from "../view/mod.ts";',
    'import { type View } from "../view/mod.ts";',
    'export { view } from "../view/mod.ts";',
    'export * from "../view/mod.ts";',
    'const view = await import("../view/mod.ts");',
    'let view: import("../view/mod.ts").View;',
    'import fs from "node:fs";',
    'import fc from "fast-check";',
    'import { CudaStream } from "../device/stream.ts";', // past the door
  ];
  for (const text of wrong) assert(importsOf("src/order/order.ts", text).some((one) => fault(one) !== null), text);
  assertEquals(importsOf("src/order/order.ts", 'import { CudaStream } from "../device/mod.ts";').map(fault), [null]);
});

test("no file needs itself, by way of others", () => {
  assertEquals(circles(imports), []);
});

test("a circle of files is seen, at whatever length", () => {
  const chain = (...files: string[]) =>
    files.slice(1).map((target, index) => ({ file: files[index] ?? "", target, isType: false, names: null }));
  assertEquals(circles(chain("a", "b", "c")), []);
  assertEquals(circles(chain("a", "b", "a")), ["a b"]);
  assertEquals(circles([...chain("x", "a", "b", "c", "a"), ...chain("b", "d", "b")]), ["a b c", "b d"]);
  assertEquals(circles(chain("a", "b", "a").map((one) => ({ ...one, isType: true }))), []);
});

test("only the adapters know a runtime by name", () => {
  const stripComments = (text: string) => text.replace(/\/\*.*?\*\//gs, "").replace(/\/\/.*$/gm, "");
  const knowing = files.filter((file) =>
    /\bDeno\.[a-zA-Z]|\bglobalThis\b|bun:ffi|\bBun\.[a-zA-Z]/.test(
      stripComments(readFileSync(join(root, file), "utf8")),
    )
  );
  assertEquals(knowing.sort(), ["src/ffi/bun.ts", "src/ffi/deno.ts", "src/ffi/node_builtin.ts"]);
});
