import { assert, assertEquals, assertGreater, assertStrictEquals, assertThrows } from "@std/assert";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { libc as table } from "../../bindings/libc.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { lazySymbols } from "../../src/ffi/lazy_symbols.ts";
import { libc } from "../../src/ffi/libc.ts";
import { isBun, runScriptForJson } from "../support/child.ts";

test("importing everything opens and binds nothing; a group is bound at its first use, alone and once", async () => {
  const script = new URL("./children/lazy.ts", import.meta.url);
  const { files, before, after, ...steps } = await runScriptForJson(script, { isBare: true }) as
    & Record<string, string[]>
    & { files: number };
  assertEquals(files, readdirSync(new URL("../../src/ffi/", import.meta.url)).length);
  assert(before !== undefined);
  assertGreater(before.length, 0);
  assertEquals(after, before, "shared libraries that are mapped");
  // Bun resolves symbols by dlsym, and binds that first.
  const first = isBun ? ["dlsym"] : [];
  assertEquals(steps, {
    imported: [],
    port: [],
    libc: [],
    groups: [],
    memory: [...first, ...Object.keys(table.memory)],
    memoryAgain: [],
    stdio: Object.keys(table.stdio),
  });
});

const i32 = { args: ["i32"], returns: "i32" } as const;

test("a group that cannot be bound does not keep the others from working, and says so at each use", () => {
  const groups = lazySymbols({ broken: { no_such_symbol: i32 }, whole: { abs: i32 } }, "libc.so.6", 0n);
  assertEquals(Object.keys(groups), ["broken", "whole"]);
  assertEquals(groups.whole.abs(-5), 5);
  for (let i = 0; i < 2; i++) assertThrows(() => groups.broken, FfiError, "no_such_symbol");
});

test("a group is one object, and so are its functions", () => {
  const groups = lazySymbols({ numbers: { abs: i32, labs: { args: ["i64"], returns: "i64" } } }, "libc.so.6", 0n);
  assertStrictEquals(groups.numbers, groups.numbers);
  assertStrictEquals(groups.numbers.abs, groups.numbers.abs);
  assertEquals(Object.keys(groups.numbers).toSorted(), ["abs", "labs"]); // in no particular order
});

test("the C library is one for the process, and every function of its table is bound", () => {
  assertStrictEquals(libc(), libc());
  for (const [name, group] of Object.entries(table)) {
    const functions = Object.entries(libc()[name as keyof typeof table]);
    assertEquals(functions.map(([name]) => name).toSorted(), Object.keys(group).toSorted());
    for (const [name, value] of functions) assertEquals(typeof value, "function", name);
  }
});
