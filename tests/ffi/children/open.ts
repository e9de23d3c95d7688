/**
 * Opens libraries one after the other, by the steps on standard input, and prints the outcome of each. Runs in a
 * separate process, because a loaded library stays loaded, and LD_LIBRARY_PATH is read when a process starts.
 */
import { readFileSync, realpathSync } from "node:fs";
import process from "node:process";
import { LibraryNotFoundError } from "../../../src/ffi/errors.ts";
import { libc } from "../../../src/ffi/libc.ts";
import { type LibraryDescription, type NativeLibrary, openLibrary } from "../../../src/ffi/library.ts";
import { cString } from "../../../src/ffi/c_string.ts";
import type { OpenOutcome, OpenStep } from "../open.ts";

const cos = { args: ["f64"], returns: "f64", optional: true } as const;
const own = { args: [], returns: "i32", optional: true } as const;
const symbols = { opening: { cos, causeway_test_symbol: own } } as const;
const opened: NativeLibrary<typeof symbols>[] = [];

function open({ env = {}, chdir, description }: OpenStep): OpenOutcome {
  for (const [name, value] of Object.entries(env)) {
    if (value === null) delete process.env[name];
    else process.env[name] = value;
  }
  try {
    const full: LibraryDescription<typeof symbols> = { ...description, symbols };
    const library = openLibrary(full);
    const same = opened.findIndex((other) => other === library);
    opened.push(library);
    if (chdir !== undefined) process.chdir(chdir); // before the functions are bound
    return {
      path: library.path,
      handle: String(library.handle),
      mapped: mapped().has(realpathSync(library.path)),
      sameAs: same < 0 ? null : same,
      cosOf0: library.functions.opening.cos?.(0) ?? null,
      isGlobal: libc().loading.dlsym(0n, cString("causeway_test_symbol")) !== 0n, // 0n is RTLD_DEFAULT
    };
  } catch (error) {
    if (!(error instanceof LibraryNotFoundError)) throw error;
    const { name, message, library, attempts, remedy } = error;
    opened.push({ path: "", handle: 0n, functions: { opening: { cos: null, causeway_test_symbol: null } } });
    return { error: { name, message, library, attempts, remedy } };
  }
}

/** Every mapped file. */
function mapped(): Set<string> {
  const lines = readFileSync("/proc/self/maps", "utf8").split("\n");
  return new Set(lines.map((line) => line.slice(line.indexOf("/"))));
}

console.log(JSON.stringify((JSON.parse(readFileSync(0, "utf8")) as OpenStep[]).map(open)));
