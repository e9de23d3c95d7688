/**
 * Costs of the FFI seam, each beside its floor in the same run: calls beside a bare hand-written dlopen, struct fields
 * beside a raw DataView, the first opening of libcuda's bindings, and the import of mod.ts. Prints a table, and exits
 * with 1 if a budget is exceeded.
 *
 * Usage: ffi.ts                    everything
 *        ffi.ts --open             opens libcuda's bindings once and prints the milliseconds
 *        ffi.ts --open-bare PATH   the same by the runtime's own dlopen; the table does both many times
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { FunctionDescription } from "../bindings/abi.ts";
import { cuda } from "../bindings/cuda.ts";
import { libcuda } from "../src/driver/driver.ts";
import { NativeArena } from "../src/ffi/arena.ts";
import { LibraryNotFoundError } from "../src/ffi/errors.ts";
import { lazySymbols } from "../src/ffi/lazy_symbols.ts";
import { openLibrary } from "../src/ffi/library.ts";
import { newArrayBuffer } from "../src/native/huge_pages.ts";
import { ffiPort } from "../src/ffi/port.ts";
import { struct } from "../src/ffi/struct.ts";
import { cString } from "../src/ffi/c_string.ts";

const isBun = process.versions["bun"] !== undefined;

/** The groups that a first `Cuda.open()` binds. */
const openingGroups = ["opening", "device", "context"] as const;

const budgets = { call: 1.2, memory: 1.1, openMs: isBun ? 5 : 15, importMs: 60 } as const;

const modulePath = new URL("../mod.ts", import.meta.url).href;

interface Row {
  readonly what: string;
  readonly measured: string;
  readonly floor: string;
  readonly ratio: string;
  readonly budget: string;
  readonly passes: boolean | null;
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return ((sorted[(sorted.length - 1) >> 1] ?? NaN) + (sorted[sorted.length >> 1] ?? NaN)) / 2;
}

function ns(value: number): string {
  return `${value.toFixed(2)} ns`;
}

function ms(value: number): string {
  return `${value.toFixed(2)} ms`;
}

// -- Calls and fields: two loops of the same shape, measured in turns --

const calls = 10_000;

/**
 * Times two functions that each repeat something `calls` times, in alternation, and compares the fastest run of each:
 * on a shared machine, slower runs say more about the other load.
 */
async function beside(what: string, ours: () => unknown, floor: () => unknown, budget: number | null): Promise<Row> {
  const { measure } = await import("mitata");
  const options = { min_cpu_time: 60e6, gc: () => {} }; // mitata's own collection costs Deno a gigabyte each time
  let [best, bestFloor] = [Infinity, Infinity];
  for (let turn = 0; turn < 7; turn++) {
    bestFloor = Math.min(bestFloor, (await measure(floor, options)).min / calls);
    best = Math.min(best, (await measure(ours, options)).min / calls);
  }
  const ratio = best / bestFloor;
  return {
    what,
    measured: ns(best),
    floor: ns(bestFloor),
    ratio: ratio.toFixed(2),
    budget: budget === null ? "" : `${budget}x`,
    passes: budget === null ? null : ratio <= budget,
  };
}

/** The same three functions as a user would bind them by hand. */
interface Bare {
  abs(value: number): number;
  strlen(text: bigint): bigint;
  strnlen(text: Uint8Array, max: bigint): bigint;
}

/** The runtime's dlopen, with nothing around it. */
function bareLibrary(): { dlopen(path: string, symbols: object): { symbols: unknown } } {
  const owner: unknown = isBun ? process.getBuiltinModule("bun:ffi") : Reflect.get(globalThis, "Deno");
  return owner as { dlopen(path: string, symbols: object): { symbols: unknown } };
}

function bareFunctions(): Bare {
  const functions = isBun
    ? {
      abs: { args: ["i32"], returns: "i32" },
      strlen: { args: ["u64"], returns: "u64" },
      strnlen: { args: ["ptr", "u64"], returns: "u64" },
    }
    : {
      abs: { parameters: ["i32"], result: "i32" },
      strlen: { parameters: ["u64"], result: "u64" },
      strnlen: { parameters: ["buffer", "u64"], result: "u64" },
    };
  return bareLibrary().dlopen("libc.so.6", functions).symbols as Bare;
}

async function callRows(): Promise<Row[]> {
  using arena = new NativeArena();
  const bare = bareFunctions();
  const derived = lazySymbols(
    {
      text: {
        abs: { args: ["i32"], returns: "i32" },
        strlen: { args: ["ptr"], returns: "size" },
        strnlen: { args: ["buffer", "size"], returns: "size" },
      },
    },
    "libc.so.6",
    0n,
  );
  const address = arena.cString("text");
  const bytes = cString("text");
  return [
    await beside(
      "call abs(i32) -> i32",
      () => {
        let sum = 0;
        for (let i = 0; i < calls; i++) sum += derived.text.abs(i - 5000);
        return sum;
      },
      () => {
        let sum = 0;
        for (let i = 0; i < calls; i++) sum += bare.abs(i - 5000);
        return sum;
      },
      budgets.call,
    ),
    await beside(
      "call strlen(u64) -> u64",
      () => {
        let last = 0n;
        for (let i = 0; i < calls; i++) last = derived.text.strlen(address);
        return last;
      },
      () => {
        let last = 0n;
        for (let i = 0; i < calls; i++) last = bare.strlen(address);
        return last;
      },
      budgets.call,
    ),
    await beside(
      "call strnlen(buffer, u64) -> u64",
      () => {
        let last = 0n;
        for (let i = 0; i < calls; i++) last = derived.text.strnlen(bytes, 16n);
        return last;
      },
      () => {
        let last = 0n;
        for (let i = 0; i < calls; i++) last = bare.strnlen(bytes, 16n);
        return last;
      },
      budgets.call,
    ),
  ];
}

async function fieldRows(): Promise<Row[]> {
  using arena = new NativeArena();
  const description = { narrow: "i32", wide: "u64", length: "size", inner: { x: "f64", y: "f64" } } as const;
  const view = arena.struct(description);
  const raw = new DataView(ffiPort().memory(view.$address, struct(description).size));
  const littleEndian = true;
  view.wide = 1n << 40n;
  view.length = 2 ** 33 + 5;
  const wide = 1n << 41n;
  return [
    await beside("read i32 field", () => {
      let sum = 0;
      for (let i = 0; i < calls; i++) sum += view.narrow;
      return sum;
    }, () => {
      let sum = 0;
      for (let i = 0; i < calls; i++) sum += raw.getInt32(0, littleEndian);
      return sum;
    }, null),
    await beside("write i32 field", () => {
      for (let i = 0; i < calls; i++) view.narrow = i;
    }, () => {
      for (let i = 0; i < calls; i++) raw.setInt32(0, i, littleEndian);
    }, null),
    await beside("read u64 field", () => {
      let same = 0;
      for (let i = 0; i < calls; i++) if (view.wide === wide) same++;
      return same;
    }, () => {
      let same = 0;
      for (let i = 0; i < calls; i++) if (raw.getBigUint64(8, littleEndian) === wide) same++;
      return same;
    }, null),
    await beside("write u64 field", () => {
      for (let i = 0; i < calls; i++) view.wide = wide;
    }, () => {
      for (let i = 0; i < calls; i++) raw.setBigUint64(8, wide, littleEndian);
    }, null),
    await beside("read size field (DataView: two halves)", () => {
      let sum = 0;
      for (let i = 0; i < calls; i++) sum += view.length;
      return sum;
    }, () => {
      let sum = 0;
      for (let i = 0; i < calls; i++) {
        sum += raw.getUint32(16, littleEndian) + raw.getUint32(20, littleEndian) * 2 ** 32;
      }
      return sum;
    }, null),
    await beside("write size field (DataView: two halves)", () => {
      for (let i = 0; i < calls; i++) view.length = i;
    }, () => {
      for (let i = 0; i < calls; i++) {
        raw.setUint32(16, i, littleEndian);
        raw.setUint32(20, 0, littleEndian);
      }
    }, null),
    await beside("read f64 of a nested struct", () => {
      let sum = 0;
      for (let i = 0; i < calls; i++) sum += view.inner.y;
      return sum;
    }, () => {
      let sum = 0;
      for (let i = 0; i < calls; i++) sum += raw.getFloat64(32, littleEndian);
      return sum;
    }, null),
  ];
}

// -- Opening and importing: done once per process, in many processes --

/** Runs a script to completion in its own process. */
function run(script: string, args: readonly string[], env: { readonly [name: string]: string }): string {
  const start = isBun ? ["run"] : ["run", "-A", "--quiet"];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...start, script, ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw new Error(`${script} ${args.join(" ")} failed:\n${stderr}`);
  return stdout;
}

/**
 * Opens what a first `Cuda.open()` needs, in a fresh process: the C library's functions, the search, libcuda itself,
 * and the three groups. Returns milliseconds in total, and those spent binding the groups.
 */
function openOnce(): { readonly total: number; readonly binding: number } {
  const start = performance.now();
  const { functions } = openLibrary(libcuda);
  const opened = performance.now();
  for (const group of openingGroups) functions[group];
  const end = performance.now();
  return { total: end - start, binding: end - opened };
}

/** Binds the same symbols of the same library with the runtime's own dlopen and nothing around it. Milliseconds. */
function openBare(path: string): { readonly total: number } {
  const word = (type: string) => type === "ptr" || type === "size" ? "u64" : isBun && type === "buffer" ? "ptr" : type;
  const symbols: Record<string, object> = {};
  for (const group of openingGroups) {
    const functions: { readonly [name: string]: FunctionDescription } = cuda[group];
    for (const [name, { args, returns, optional }] of Object.entries(functions)) {
      if (optional) continue; // one of the runtimes cannot bind optional symbols
      const [types, result] = [args.map(word), word(returns)];
      symbols[name] = isBun ? { args: types, returns: result } : { parameters: types, result };
    }
  }
  const start = performance.now();
  bareLibrary().dlopen(path, symbols);
  return { total: performance.now() - start };
}

/** The libcuda to open: the real one, or a library that exports the same names. */
function libcudaHere(folder: string): { readonly path: string; readonly which: string } | null {
  try {
    const { path } = openLibrary(libcuda);
    return { path, which: path };
  } catch (error) {
    if (!(error instanceof LibraryNotFoundError)) throw error;
  }
  const names = openingGroups.flatMap((group) => Object.keys(cuda[group]));
  const source = join(folder, "cuda.c");
  const path = join(folder, "libcuda.so.1");
  writeFileSync(source, names.map((name) => `int ${name}(void) { return 0; }\n`).join(""));
  if (spawnSync("cc", ["-shared", "-fPIC", "-o", path, source]).status !== 0) return null;
  return { path, which: "a library that exports the same names" };
}

function openingRows(folder: string): Row[] | string {
  const here = libcudaHere(folder);
  if (here === null) {
    return "Not measured: opening libcuda. There is neither a libcuda nor a C compiler (apt-get install gcc).";
  }
  const self = fileURLToPath(import.meta.url);
  const env = { CAUSEWAY_LIBCUDA: here.path };
  const times = Array.from({ length: 21 }, () => ({
    ours: JSON.parse(run(self, ["--open"], env)) as ReturnType<typeof openOnce>,
    bare: JSON.parse(run(self, ["--open-bare", here.path], env)) as ReturnType<typeof openBare>,
  }));
  const floor = median(times.map(({ bare }) => bare.total));
  const total = median(times.map(({ ours }) => ours.total));
  const binding = median(times.map(({ ours }) => ours.binding));
  const symbols = openingGroups.reduce((sum, group) => sum + Object.keys(cuda[group]).length, 0);
  const row = (what: string, time: number): Row => ({
    what,
    measured: ms(time),
    floor: ms(floor),
    ratio: (time / floor).toFixed(2),
    budget: `${budgets.openMs} ms`,
    passes: time <= budgets.openMs,
  });
  return [
    row(`bind ${openingGroups.join(", ")} of libcuda: ${symbols} symbols`, binding),
    row(`the same from nothing: libc, search, load (${here.which}), bind`, total),
  ];
}

/**
 * New memory, written once, beside an ArrayBuffer of the runtime. Some of each is kept alive: none is reused.
 */
function memoryRows(): Row[] {
  return [8, 24, 64].map((mebibytes) => {
    const size = mebibytes * 2 ** 20;
    const source = new Uint8Array(size).fill(7);
    const kept: ArrayBuffer[] = [];
    const time = (make: (size: number) => ArrayBuffer) => {
      const start = performance.now();
      const memory = make(size);
      new Uint8Array(memory).set(source);
      const taken = performance.now() - start;
      kept.push(memory);
      if (kept.length > 4) kept.shift();
      return taken;
    };
    const times = Array.from(
      { length: 25 },
      () => [time((size) => new ArrayBuffer(size)), time(newArrayBuffer)] as const,
    );
    const [floor, measured] = [median(times.map(([plain]) => plain)), median(times.map(([, ours]) => ours))];
    return {
      what: `copy ${mebibytes} MiB into new memory, beside an ArrayBuffer`,
      measured: ms(measured),
      floor: ms(floor),
      ratio: (measured / floor).toFixed(2),
      budget: `${budgets.memory}x`,
      passes: measured <= budgets.memory * floor,
    };
  });
}

function importRow(folder: string): Row {
  const [empty, importing] = [join(folder, "empty.ts"), join(folder, "importing.ts")];
  writeFileSync(empty, "export {};\n");
  writeFileSync(importing, `import ${JSON.stringify(modulePath)};\n`);
  const time = (script: string) => {
    const start = performance.now();
    run(script, [], {});
    return performance.now() - start;
  };
  for (const script of [empty, importing]) time(script); // fills the caches of the runtime
  const times = Array.from({ length: 20 }, () => [time(empty), time(importing)] as const);
  const [floor, total] = [median(times.map(([empty]) => empty)), median(times.map(([, importing]) => importing))];
  return {
    what: "import mod.ts, beside an empty script",
    measured: ms(total),
    floor: ms(floor),
    ratio: `+${ms(total - floor)}`,
    budget: `+${budgets.importMs} ms`,
    passes: total - floor <= budgets.importMs,
  };
}

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "causeway-bench-"));
  try {
    const { runtime, platform } = ffiPort();
    const cpu = cpus()[0]?.model ?? "unknown processor";
    console.log(`${runtime.name} ${runtime.version}, ${platform.os} ${platform.arch}, ${cpus().length} x ${cpu}\n`);
    console.log("| what | measured | floor | ratio | budget | |\n|---|---|---|---|---|---|");
    const notes: string[] = [];
    let failures = 0;
    const opening = openingRows(folder);
    if (typeof opening === "string") notes.push(opening);
    const rows = [...await callRows(), ...await fieldRows(), ...(typeof opening === "string" ? [] : opening)];
    for (const row of [...rows, ...memoryRows(), importRow(folder)]) {
      const verdict = row.passes === null ? "" : row.passes ? "PASS" : "FAIL";
      if (row.passes === false) failures++;
      console.log(`| ${[row.what, row.measured, row.floor, row.ratio, row.budget, verdict].join(" | ")} |`);
    }
    for (const note of notes) console.log(`\n${note}`);
    return failures === 0 ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[2] === "--open") console.log(JSON.stringify(openOnce()));
else if (process.argv[2] === "--open-bare") console.log(JSON.stringify(openBare(process.argv[3] ?? "")));
else process.exitCode = await main();
