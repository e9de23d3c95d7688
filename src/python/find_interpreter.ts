/**
 * Finds the Python that a program should use: an interpreter, its library, and their packages.
 *
 * @module
 */
import { cString, ffiPort, libc, NativeArena } from "../ffi/mod.ts";
import { describeInstallationSource, listPackagesSource } from "./guest_source.ts";

/** An interpreter's own description. */
export interface Installation {
  /** The program, in its virtualenv if it has one: the library locates its packages from this path. */
  readonly executable: string;
  /** `3.12`. */
  readonly version: string;
  /** Candidate paths of its library, best first; the last is a soname for the dynamic linker. */
  readonly libraries: readonly string[];
}

/**
 * Candidate interpreters, best first. With `home` or CAUSEWAY_PYTHON there is only that one; otherwise the active
 * virtualenv's, the conda environment's, the first `python3` on PATH, and the system's own, whose library a
 * distribution installs. Interpreters that do not run are skipped.
 *
 * @param home a virtualenv or another folder with `bin/python3`, or an interpreter itself
 */
export function* findInterpreters(home?: string): Generator<Installation> {
  for (const program of programs(home)) {
    const found = ask(program, describeInstallationSource);
    if (found !== null) yield found as Installation; // what the script prints
  }
}

function programs(home: string | undefined): string[] {
  if (home !== undefined) return [`${home}/bin/python3`, home];
  const env = (name: string): string[] => [ffiPort().env(name) ?? ""].filter((value) => value !== "");
  const chosen = env("CAUSEWAY_PYTHON");
  if (chosen.length > 0) return chosen;
  const folders = [...env("VIRTUAL_ENV"), ...env("CONDA_PREFIX")];
  return [...folders.map((folder) => `${folder}/bin/python3`), "python3", "/usr/bin/python3"];
}

/** An interpreter, and the versions of packages; null where one is missing. */
export interface InstalledPackages {
  readonly path: string;
  readonly version: string;
  readonly packages: { readonly [name: string]: string | null };
}

/** Asks an interpreter which of these packages it has. Null if there is no such program, or it is not a Python. */
export function listPackages(program: string, names: readonly string[]): InstalledPackages | null {
  return ask(program, listPackagesSource, ...names) as InstalledPackages | null; // what the script prints
}

/** What comes before a script: `python -c` would import the current folder's `json.py` instead of Python's. */
const withoutCurrentFolder = "import sys\nsys.path[:] = filter(None, sys.path)\n";

// law python/ask: python/open
/** What a script prints as JSON in an interpreter of its own process. */
function ask(program: string, script: string, ...args: readonly string[]): unknown {
  const words = [program, "-c", withoutCurrentFolder + script, ...args].map(quoted).join(" ");
  try {
    return JSON.parse(outputOf(`${words} 2>/dev/null </dev/null`));
  } catch {
    return null; // no such program, or not a Python
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** The output of a shell command. libc runs it, because the runtimes' own functions need a permission beyond FFI. */
function outputOf(command: string): string {
  const { popen, fread, pclose } = libc().stdio;
  const stream = popen(cString(command), cString("re"));
  if (stream === 0n) return "";
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(16 * 1024); // far more than the answer needs
  const length = Number(fread(address, 1n, BigInt(bytes.length), stream));
  pclose(stream);
  return new TextDecoder().decode(bytes.slice(0, length));
}
