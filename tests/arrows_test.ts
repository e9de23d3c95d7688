/**
 * The rooms, and which may import which. An import points down, at run time and in types alike: no room knows those
 * above it.
 */
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));

/**
 * Each room, from the ground up as in docs/architecture.md, and the rooms that it may import from. Its own files are
 * always allowed, and every allowed arrow is needed: one that no import uses any more is removed.
 */
const rooms: { readonly [room: string]: readonly string[] } = {
  bindings: [],
  layout: [],
  ffi: ["bindings"],
  native: ["bindings", "ffi"],
  unix: ["bindings", "layout", "ffi"],
  wasm: [],

  driver: ["bindings", "ffi"],
  ptx: [],
  sim: ["bindings", "layout", "ffi", "driver", "ptx"],
  checker: ["bindings", "layout", "ffi", "driver", "ptx"],

  device: ["bindings", "layout", "ffi", "unix", "driver"],
  order: ["bindings", "layout", "ffi", "driver", "device"],
  memory: ["bindings", "layout", "ffi", "native", "unix", "driver", "device", "order"],
  copy: ["bindings", "layout", "ffi", "native", "wasm", "driver", "device", "order", "memory"],
  dlpack: ["bindings", "layout", "ffi", "native", "device", "order", "memory", "copy"],
  cdata: ["bindings", "layout", "ffi", "native", "driver", "device", "order", "memory", "copy"],
  view: ["layout", "native", "driver", "device", "order", "memory", "copy", "dlpack", "cdata"],
  files: ["bindings", "layout", "ffi", "device", "order", "memory", "copy", "view"],
  arrow: ["bindings", "layout", "ffi", "native", "device", "order", "copy", "cdata", "view"],
  python: [
    ...["bindings", "layout", "ffi", "native", "unix", "driver", "device"],
    ...["order", "copy", "dlpack", "cdata", "view", "arrow"],
  ],

  cuda: ["bindings", "layout", "ffi", "driver", "sim", "checker", "device", "memory"],
  ucx: ["bindings", "layout", "ffi", "native", "unix", "device", "order", "memory", "copy", "view"],
  vortex: [
    ...["bindings", "layout", "ffi", "native", "unix", "wasm", "device", "order", "memory"],
    ...["copy", "cdata", "view", "arrow"],
  ],
};

/**
 * Two rooms may use every other one: the command line, which carries data through all of them, and the entry points,
 * `mod.ts` and `src/public/`, which only export.
 */
const everything = { ...rooms, public: Object.keys(rooms), cli: Object.keys(rooms) };

/**
 * Rooms without a door. Each header of `bindings/` is data about one library, and imported by its own name: a door
 * would load all of them for one. `public` has no inside: each of its files is a door, a subpath of the package.
 */
const withoutDoor = new Set(["bindings", "public"]);

/** Type imports that point up, each with its reason. */
const typesUp: { readonly [arrow: string]: string } = {
  "src/device/device.ts -> memory":
    "`CudaDevice.memory` is what a user expects; the code that makes the device sets its memory",
};

/** The only room that may import a runtime's own modules: they are slow to load. Others call ffi's `nodeBuiltin`. */
const mayUseNode: { readonly [room: string]: readonly string[] } = {
  cli: [
    "deno.json", // for the version
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
  /** The imported file, from the root as well, or the name of a package. */
  readonly target: string;
  /** Nothing of it exists at run time. */
  readonly isType: boolean;
  /** The imported names, as exported there; null for everything. */
  readonly names: readonly string[] | null;
}

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name));
}

function roomOf(file: string): string {
  if (file === "mod.ts") return "public";
  const [top = "", second = ""] = file.split("/");
  return top === "src" ? second : top;
}

/** All imports of a source: declarations, re-exports, types of another module, and dynamic imports. */
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

/** The names of the values that a source exports: those of functions, classes and variables, and of a list. */
function exportedValues(file: string, text: string): string[] {
  const bound = (name: ts.BindingName): string[] =>
    ts.isIdentifier(name)
      ? [name.text]
      : name.elements.flatMap((element) => ts.isBindingElement(element) ? bound(element.name) : []);
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest).statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement)) {
      const { exportClause: list, isTypeOnly } = statement;
      if (isTypeOnly || list === undefined || !ts.isNamedExports(list)) return [];
      return list.elements.filter(({ isTypeOnly }) => !isTypeOnly).map(({ name }) => name.text);
    }
    const isExported = ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!isExported) return [];
    if (ts.isVariableStatement(statement)) {
      return statement.declarationList.declarations.flatMap(({ name }) => bound(name));
    }
    const isNamed = ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement);
    return isNamed && statement.name !== undefined ? [statement.name.text] : [];
  });
}

/** Exported values that no import names, of a file that nothing imports as a whole: `file: name`. */
function unusedExports(sources: readonly (readonly [file: string, text: string])[], imports: readonly Import[]) {
  const used = new Map<string, Set<string> | null>();
  for (const { target, names } of imports) {
    const known = used.getOrInsertComputed(target, () => new Set());
    if (names === null) used.set(target, null);
    else for (const name of names) known?.add(name);
  }
  return sources.flatMap(([file, text]) => {
    const names = used.get(file);
    if (names === null) return [];
    return exportedValues(file, text).filter((name) => !names?.has(name)).map((name) => `${file}: ${name}`);
  });
}

/** Whether other rooms may import a file: a room's door, or a header of `bindings/`. */
function isDoor(file: string): boolean {
  return file.startsWith("bindings/") || /^src\/\w+\/mod\.ts$/.test(file);
}

/** What is wrong with an import, or null. */
function violation({ file, target, isType }: Import): string | null {
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

/** Import cycles, each once, by its first file. */
function cycles(imports: readonly Import[]): string[] {
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

const files = ["mod.ts", ...sources("bindings"), ...sources("src")];
const imports = files.flatMap((file) => importsOf(file, readFileSync(join(root, file), "utf8")));

test("all imports are seen: as many as there are lines that end in a path", () => {
  const lines = files.flatMap((file) =>
    readFileSync(join(root, file), "utf8").split("\n").filter((line) =>
      /^(import "|(import|export|\}).* from ")[^"]+";$/.test(line)
    )
  );
  assert(imports.length >= lines.length && lines.length > 900, `${imports.length} of ${lines.length}`);
});

test("every room is known here, and nothing else is", () => {
  assertEquals(new Set(files.map(roomOf)), new Set(Object.keys(everything)));
});

test("the rooms are listed as in docs/architecture.md, each above those that it uses", () => {
  const page = readFileSync(join(root, "docs/architecture.md"), "utf8");
  const order = Object.keys(rooms);
  const listed = Array.from(page.matchAll(/^(\w+)\/ /gm), ([, name = ""]) => name);
  assertEquals(listed.filter((name) => name in rooms), order);
  const up = Object.entries(rooms).flatMap(([from, targets]) =>
    targets.filter((to) => order.indexOf(to) >= order.indexOf(from)).map((to) => `${from} -> ${to}`)
  );
  assertEquals(up, []);
});

test("no room imports from a room above it, nor past a door, neither code nor types", () => {
  const wrong = [...new Set(imports.map(violation).filter((arrow) => arrow !== null))].sort();
  assertEquals(wrong, []);
});

test("every arrow that is allowed is used", () => {
  const unused = (of: readonly Import[]) => {
    const used = new Set(of.map(({ file, target }) => `${roomOf(file)} -> ${roomOf(target)}`));
    const allowed = Object.entries(rooms).flatMap(([from, targets]) => targets.map((to) => `${from} -> ${to}`));
    return allowed.filter((arrow) => !used.has(arrow));
  };
  assertEquals(unused(imports), []);
  const without = imports.filter(({ file, target }) => roomOf(file) !== "unix" || roomOf(target) !== "layout");
  assertEquals(unused(without), ["unix -> layout"]);
});

test("types that point up are few, and they are still needed", () => {
  const used = new Set(
    imports.filter(({ isType }) => isType).map(({ file, target }) => `${file} -> ${roomOf(target)}`),
  );
  assertEquals(Object.keys(typesUp).filter((arrow) => !used.has(arrow)), []);
});

test("every room has a door, which says what the room is and exports exactly what others use", () => {
  for (const room of Object.keys(everything)) {
    if (withoutDoor.has(room)) continue;
    const door = `src/${room}/mod.ts`;
    const text = readFileSync(join(root, door), "utf8");
    assert(/^\/\*\*\n(?: \*.*\n){4,24} \* @module\n/.test(text), `${door} does not say what the room is`);
    const exported = importsOf(door, text).flatMap(({ names }) => names ?? []);
    const used = new Set(
      imports.filter(({ file, target }) => target === door && roomOf(file) !== room).flatMap(({ names }) =>
        names ?? exported
      ),
    );
    assertEquals(exported.filter((name) => !used.has(name)), [], door);
  }
});

/** What imports the sources, beside themselves. */
const users = ["tests", "tools", "bench", "examples"].flatMap(sources);

test("a file exports what another file imports, and nothing else", () => {
  const inside = files.filter((file) => file.startsWith("src/") && !isDoor(file) && roomOf(file) !== "public");
  const others = users.flatMap((file) => importsOf(file, readFileSync(join(root, file), "utf8")));
  const texts = inside.map((file) => [file, readFileSync(join(root, file), "utf8")] as const);
  assertEquals(unusedExports(texts, [...imports, ...others]), []);
});

test("a value that is exported for nothing is found, however it is declared", () => {
  const text = [
    "export function one() {}",
    "export class Two {}",
    "export const { three, inner: [four] } = layout, five = 5;",
    "const six = 6;",
    "export { six as sixth, type Seven };",
    "export type Eight = number;",
    "export interface Nine {}",
  ].join("\n");
  const found = (user: string) => unusedExports([["src/order/waits.ts", text]], importsOf("src/order/loan.ts", user));
  const all = ["one", "Two", "three", "four", "five", "sixth"].map((name) => `src/order/waits.ts: ${name}`);
  assertEquals(found(""), all);
  assertEquals(found('import { one } from "./other.ts";'), all);
  assertEquals(found('import { one as first, type Two, four, sixth } from "./waits.ts";'), [all[2], all[4]]);
  assertEquals(found('export { three } from "./waits.ts";'), all.filter((name) => !name.endsWith("three")));
  assertEquals(found('const { one } = await import("./waits.ts");'), []);
  assertEquals(found('import * as waits from "./waits.ts";'), []);
});

test("an arrow that points up is detected, whichever way it is written", () => {
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
  for (const text of wrong) assert(importsOf("src/order/waits.ts", text).some((one) => violation(one) !== null), text);
  assertEquals(importsOf("src/order/waits.ts", 'import { CudaStream } from "../device/mod.ts";').map(violation), [
    null,
  ]);
  assertEquals(importsOf("mod.ts", 'export { CudaStream } from "./src/device/mod.ts";').map(violation), [null]);
  assertEquals(importsOf("mod.ts", 'export { CudaStream } from "./src/device/stream.ts";').map(violation), [
    "mod.ts -> src/device/stream.ts, past the door",
  ]);
});

test("no file imports itself, by way of others", () => {
  assertEquals(cycles(imports), []);
});

test("a cycle of files is detected, at any length", () => {
  const chain = (...files: string[]) =>
    files.slice(1).map((target, index) => ({ file: files[index] ?? "", target, isType: false, names: null }));
  assertEquals(cycles(chain("a", "b", "c")), []);
  assertEquals(cycles(chain("a", "b", "a")), ["a b"]);
  assertEquals(cycles([...chain("x", "a", "b", "c", "a"), ...chain("b", "d", "b")]), ["a b c", "b d"]);
  assertEquals(cycles(chain("a", "b", "a").map((one) => ({ ...one, isType: true }))), []);
});

test("every room has a folder of tests", () => {
  const tested = (room: string) =>
    readdirSync(join(root, "tests", room), { recursive: true, encoding: "utf8" }).some((name) =>
      /_test\.ts$/.test(name)
    );
  assertEquals(Object.keys(everything).filter((room) => !tested(room)), []);
});

test("helpers of several rooms' tests are in tests/support, and behaviours also run on a GPU in tests/gpu", () => {
  const paths = readdirSync(join(root, "tests"), { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts") && name.includes("/")
  ).map((name) => `tests/${name}`);
  const folderOf = (path: string) => path.split("/")[1] ?? "";
  const wrong = paths.flatMap((file) => importsOf(file, readFileSync(join(root, file), "utf8"))).filter((
    { file, target },
  ) =>
    target.startsWith("tests/") && ![folderOf(file), "support"].includes(folderOf(target)) &&
    !/^tests\/gpu\/\w*(behaviours|beside_captures)\.ts$/.test(target)
  );
  assertEquals(wrong.map(({ file, target }) => `${file} -> ${target}`), []);
});

/** Files outside `order/` that may wait for a device's work all the same, each with its reason. */
const mayWait: { readonly [file: string]: string } = {
  "src/memory/staging_ring.ts": "a ring of slots waits for its own events: no memory changes hands",
  "src/cli/bandwidth/bench.ts": "a program is a user of the package like any other",
  "src/cli/bandwidth/measure.ts": "a program is a user of the package like any other",
  "src/cli/demo.ts": "a program is a user of the package like any other",
};

test("only order/ decides which stream waits: no other room makes a stream wait, or the host for one", () => {
  const rooms = /^src\/(order|device|sim|checker|ptx)\//; // it decides, has these methods, or implements them
  const streams = "(?:[sS]tream|home|producer|consumer|helper|sending|receiving)";
  const waits = new RegExp(
    `(?<!this)\\.(synchronize|waitUntilReady|ready)\\(\\)|\\bwaitForDevice\\(|${streams}\\??\\.wait\\(`,
  );
  const isWaiting = (line: string) => !/^ *(\*|\/\/|")/.test(line) && waits.test(line);
  assert(
    isWaiting("  home.wait(stream);") && isWaiting("await view.stream?.ready();") && !isWaiting(" * stream.wait(a)"),
  );
  const waiting = files.filter((file) =>
    !rooms.test(file) && readFileSync(join(root, file), "utf8").split("\n").some(isWaiting)
  );
  assertEquals(waiting.sort(), Object.keys(mayWait).sort());
});

test("only the adapters know a runtime by name", () => {
  // A symbol of the registry is known by its name alone, in any runtime.
  const stripComments = (text: string) =>
    text.replace(/\/\*.*?\*\//gs, "").replace(/\/\/.*$/gm, "").replaceAll(/Symbol\.for\(".*?"\)/g, "");
  const knowing = files.filter((file) =>
    /\bDeno\.[a-zA-Z]|\bglobalThis\b|bun:ffi|\bBun\.[a-zA-Z]/.test(
      stripComments(readFileSync(join(root, file), "utf8")),
    )
  );
  assertEquals(knowing.sort(), ["src/ffi/bun.ts", "src/ffi/deno.ts", "src/ffi/node_builtin.ts"]);
});
