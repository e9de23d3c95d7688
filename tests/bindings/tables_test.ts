import { assert, assertArrayIncludes, assertEquals, assertLessOrEqual } from "@std/assert";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import type { FunctionDescription } from "../../bindings/abi.ts";
import { factsOf, sourceOf, type TypeFact } from "./facts.ts";
import { libraries, type Library } from "./modules.ts";
import { entriesOf, parsePrototype } from "./prototype.ts";

const bound = libraries.filter(({ tables }) => tables.length > 0);

/** Functions that newer versions of a library will remove, or may, being private; so they are optional. */
const DISAPPEARING = new Set(["Py_SetPythonHome", "Py_SetProgramName", "_PyType_Lookup"]);

function functionsOf(library: Library): [name: string, description: FunctionDescription][] {
  return library.tables.flatMap((table) => Object.values(table).flatMap((group) => Object.entries(group)));
}

/** The words of `abi.ts` that may represent a C type in a prototype. */
function wordsFor(type: string, types: { readonly [type: string]: TypeFact }): readonly string[] {
  if (type === "void") return ["void"];
  if (type === "size_t") return ["size"];
  if (type === "CUdeviceptr") return ["ptr"]; // an integer in C, an address to us
  if (type === "ucs_status_ptr_t") return ["i64", "i32"]; // a pointer in C, read for its sign or its lower half
  if (type.endsWith("*")) return /\bconst\b/.test(type) ? ["ptr", "buffer", "memory"] : ["ptr", "handle", "memory"];
  const fact = types[type];
  if (fact === undefined) return [];
  if (fact.kind === "pointer") return ["ptr", "handle"];
  if (fact.kind === "float") return [`f${8 * fact.size}`];
  if (fact.kind === "enum") return [`i${8 * fact.size}`];
  if (fact.kind === "integer") return [`${fact.signed === true ? "i" : "u"}${8 * fact.size}`];
  return fact.kind === "struct" && fact.size === 64 ? ["struct64"] : []; // no other struct by value
}

test("bindings import nothing but types, and those only from abi.ts", () => {
  const files = readdirSync(new URL("../../bindings/", import.meta.url)).filter((file) => file.endsWith(".ts"));
  // Vortex has no header: tests/vortex/core/bridge_test checks its struct against PyVortex's own capsules.
  assertEquals(files.toSorted(), ["abi.ts", "vortex.ts", ...libraries.flatMap(({ files }) => files)].toSorted());
  for (const file of files) {
    for (const line of sourceOf(file).split("\n").filter((line) => /\bfrom "|^import\b|\bimport\(/.test(line))) {
      assert(/^import type \{.*\} from "\.\/abi\.ts";$/.test(line), `${file}: ${line}`);
    }
  }
});

for (const library of bound) {
  const functions = functionsOf(library);
  const names = functions.map(([name]) => name);
  const known = factsOf(library.name);

  test(`${library.name}: no function is in two groups, but by address in one and by JavaScript's memory in another`, () => {
    const ways = functions.map(([name, { args }]) => args.includes("memory") ? `${name} by memory` : name);
    assertEquals(ways, [...new Set(ways)]);
    for (const [name, { args, returns }] of functions) {
      if (!args.includes("memory")) continue;
      const byAddress = functions.find(([other, { args }]) => other === name && !args.includes("memory"))?.[1];
      assertEquals(byAddress, { args: args.map((word) => word === "memory" ? "ptr" : word), returns }, name);
    }
  });

  test(`${library.name}: every function has its prototype above it`, () => {
    const entries = library.files.flatMap((file) => entriesOf(sourceOf(file)));
    assertEquals(entries.map(({ name }) => name), names);
    for (const { name, text, line } of entries) {
      assert(text !== null, `${library.name}: line ${line}: no prototype of ${name}`);
      const header = known.prototypes?.[name];
      assert(header !== undefined, `${name} is not in tests/data/abi_facts.json: run tests/data/abi_facts.py`);
      // The C library's documentation and headers use different parameter names.
      if (library.name === "libc") assertEquals(parsePrototype(text), parsePrototype(header));
      else assertEquals(text, header);
    }
  });

  test(`${library.name}: every function takes and returns what its prototype says`, () => {
    for (const [name, { args, returns }] of functions) {
      const prototype = parsePrototype(known.prototypes?.[name] ?? "");
      assertEquals(prototype.name, name);
      assertEquals(args.length, prototype.parameters.length, `${name}: number of parameters`);
      for (const [index, type] of prototype.parameters.entries()) {
        assertArrayIncludes(wordsFor(type, known.types ?? {}), [args[index]], `${name}: parameter ${index}, ${type}`);
      }
      const words = wordsFor(prototype.returns, known.types ?? {}).filter((word) =>
        word !== "buffer" && word !== "memory"
      );
      assertArrayIncludes(words, [returns], `${name}: result, ${prototype.returns}`);
    }
  });

  test(`${library.name}: no prototype changed between versions`, () => {
    assertEquals(known.was ?? {}, {});
  });

  test(`${library.name}: optional is exactly what some version lacks`, () => {
    const lacks = Object.values(known.lacks ?? {});
    assert(lacks.length > 0, "no library was examined");
    const missing = new Set(lacks.flat());
    const optional = functions.filter(([, { optional }]) => optional).map(([name]) => name);
    assertEquals(optional.filter((name) => !DISAPPEARING.has(name)).toSorted(), [...missing].toSorted());
    assertEquals(lacks.at(-1), [], "the newest library must have every function");
  });

  test(`${library.name}: the first group that is bound is small`, () => {
    const first = Object.entries(library.tables[0] ?? {})[0];
    assert(first !== undefined);
    if (library.name === "libc") return; // always loaded: nothing is opened
    assertEquals(first[0], "opening");
    assertLessOrEqual(Object.keys(first[1]).length, 10);
  });
}

test("cuda: optional is exactly what came after CUDA 11.4", () => {
  const since = factsOf("cuda").since ?? {};
  for (const library of bound.filter(({ name }) => name === "cuda")) {
    for (const [name, { optional }] of functionsOf(library)) {
      const version = since[name];
      assert(version !== undefined, name);
      assertEquals(optional === true, version > 11040, `${name} came with ${version}`);
    }
  }
});

test("cuda: the comment on an optional function names the version that brought it", () => {
  const since = factsOf("cuda").since ?? {};
  const lines = sourceOf("cuda.ts").split("\n");
  const remarks = lines.flatMap((line, index) => {
    const version = /^ {4}\/\/ since CUDA (\d+)\.(\d+)$/.exec(line);
    const name = /\b(cu[A-Z]\w+)\(/.exec(lines[index + 1] ?? "")?.[1] ?? "";
    return version === null ? [] : [[name, Number(version[1]) * 1000 + Number(version[2]) * 10] as const];
  });
  const newer = Object.entries(since).filter(([, version]) => version > 11040);
  assertEquals(Object.fromEntries(remarks), Object.fromEntries(newer));
});

test("cuda: functions that take a small struct by value are not bound", () => {
  const names = bound.filter(({ name }) => name === "cuda").flatMap(functionsOf).map(([name]) => name);
  for (const name of ["cuMemAdvise_v2", "cuMemPrefetchAsync_v2"]) {
    assert(!names.includes(name), name);
    assert(sourceOf("cuda.ts").includes(`${name}()`), `${name} is left out without a comment`);
  }
});
