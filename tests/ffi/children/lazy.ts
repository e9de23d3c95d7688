/**
 * Watches what is loaded and bound, and when: while everything is imported, and at each first use of the C library's
 * functions. Prints the names of the symbols that the runtime bound in each step, and the shared libraries mapped
 * before and after the imports.
 */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";

let bound: string[] = [];

/** Makes the runtime's functions that take a table of symbols record the names in it. */
function watch(module: object, names: readonly string[]): void {
  for (const name of names) {
    const real = Reflect.get(module, name) as (...args: unknown[]) => unknown;
    Reflect.set(module, name, (...args: unknown[]) => {
      bound.push(...Object.keys(args.at(-1) as object));
      return real(...args);
    });
  }
}

const deno: unknown = Reflect.get(globalThis, "Deno");
if (deno !== undefined) {
  watch(deno as object, ["dlopen"]);
} else {
  const real = process.getBuiltinModule("bun:ffi");
  const ffi: object = { ...real };
  watch(ffi, ["dlopen", "linkSymbols"]);
  Reflect.set(process, "getBuiltinModule", () => ffi);
}

function during<T>(act: () => T): [bound: string[], result: T] {
  bound = [];
  const result = act();
  return [bound, result];
}

/** The mapped shared libraries. */
function libraries(): string[] {
  const paths = readFileSync("/proc/self/maps", "utf8").split("\n").map((line) => line.slice(line.indexOf("/")));
  return [...new Set(paths.filter((path) => /\.so(\.|$)/.test(path)))].sort();
}

const before = libraries();
const root = new URL("../../../", import.meta.url);
const files = readdirSync(new URL("src/ffi/", root)).map((name) => `src/ffi/${name}`);
for (const file of [...files, "mod.ts"]) await import(new URL(file, root).href);
const imported = [...bound];
const after = libraries();

const { ffiPort } = await import("../../../src/ffi/port.ts");
const { libc } = await import("../../../src/ffi/libc.ts");
const steps = {
  port: during(() => ffiPort())[0],
  libc: during(() => libc())[0],
  groups: during(() => Object.keys(libc()))[0],
  memory: during(() => libc().memory)[0],
  memoryAgain: during(() => libc().memory.memset(libc().memory.mmap(0n, 4096n, 3, 0x22, -1, 0n), 0, 8n))[0],
  stdio: during(() => libc().stdio)[0],
};
console.log(JSON.stringify({ files: files.length, before, after, imported, ...steps }));
