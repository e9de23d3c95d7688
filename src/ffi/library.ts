/**
 * Finding a native library and opening it: an environment override, Python environments that carry NVIDIA's and UCX's
 * wheels, the dynamic linker's own search, and the places where CUDA is usually installed.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { glob_t, link_map, RTLD, RTLD_DI_LINKMAP } from "../../bindings/libc.ts";
import { NativeArena } from "./arena.ts";
import { LibraryNotFoundError, type LoadAttempt } from "./errors.ts";
import { lazySymbols } from "./lazy_symbols.ts";
import { libc } from "./libc.ts";
import { ffiPort } from "./port.ts";
import { littleEndian } from "./endian.ts";
import { struct } from "./struct.ts";
import { cString, readCString, readField } from "./c_string.ts";
import type { Functions } from "./types.ts";

/** A library's name and where it may be. */
export interface LibraryDescription<T extends SymbolTable> {
  /** Plain name, for messages: `libucp`. */
  readonly name: string;
  /** Its functions. */
  readonly symbols: T;
  /** The only file to try. */
  readonly path?: string;
  /** Environment variable that names the only file to try, unless `path` does: `CAUSEWAY_LIBUCP`. */
  readonly override: string;
  /** Versioned sonames, best first. Unversioned names exist with development packages only. */
  readonly sonames: readonly string[];
  /** Folders below a Python environment's site-packages, as glob patterns: `nvidia` / `*` / `lib`. */
  readonly wheels?: readonly string[];
  /** Environment variables that name an installation, such as CUDA_HOME; its lib folders are searched. */
  readonly homes?: readonly string[];
  /** Folders of last resort, outside the dynamic linker's search path. */
  readonly folders?: readonly string[];
  /** Makes the library's symbols visible to libraries loaded later (Python's extension modules). */
  readonly global?: true;
  /** What to install or set if it is missing, as one sentence. */
  readonly remedy: string;
}

/** An open library. It is never closed: its code and data may be in use for as long as the process lives. */
export interface NativeLibrary<T extends SymbolTable> {
  /** Absolute path of the file that was loaded. */
  readonly path: string;
  /** `dlopen`'s handle. */
  readonly handle: bigint;
  /** Its functions, bound group by group at their first use. */
  readonly functions: Functions<T>;
}

/** Open libraries by name and path; a name stands for one table. */
const opened = new Map<string, { readonly path: string; readonly handle: bigint; readonly functions: object }>();

// law ffi/openLibrary: ffi/library
/**
 * Opens a library, or returns it if this function has already opened it from the same place.
 *
 * @throws {LibraryNotFoundError} with every path tried and what to install
 */
export function openLibrary<const T extends SymbolTable>(description: LibraryDescription<T>): NativeLibrary<T> {
  const attempts: LoadAttempt[] = [];
  const flags = RTLD.NOW | (description.global ? RTLD.GLOBAL : RTLD.LOCAL);
  const tried = new Set<string>();
  for (const { path, exists } of candidates(description)) {
    if (tried.has(path)) continue;
    tried.add(path);
    const handle = exists === false ? 0n : libc().loading.dlopen(cString(path), flags);
    if (handle !== 0n) return register(description, handle);
    attempts.push({ path, error: exists === false ? "no such file" : loadError(path) });
  }
  const remedy = description.path !== undefined
    ? `${description.path === "" ? "An empty path" : description.path} was given, so nothing else was tried.`
    : environment(description.override) === undefined
    ? `${description.remedy} To open a file of your choice, set ${description.override} to its path.`
    : `${description.override} is set, so nothing else was tried: correct it or unset it.`;
  throw new LibraryNotFoundError(description.name, attempts, remedy);
}

// law ffi/register: ffi/library
/** Caches bound functions by path: binding takes time, and several callers open the same library. */
function register<T extends SymbolTable>(description: LibraryDescription<T>, handle: bigint): NativeLibrary<T> {
  const path = pathOf(handle);
  const key = `${description.name}\0${path}`;
  const library = opened.get(key) ?? { path, handle, functions: lazySymbols(description.symbols, path, handle) };
  opened.set(key, library);
  return library as NativeLibrary<T>;
}

/** The dynamic linker's last error, without the path that it usually starts with. */
function loadError(path: string): string {
  const message = readCString(libc().loading.dlerror());
  return message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message;
}

/** `dlinfo` request for the folder in which a library was found, made absolute (dlfcn.h). */
const RTLD_DI_ORIGIN = 6;

/** The file behind a handle, from the dynamic linker's own list. */
function pathOf(handle: bigint): string {
  using arena = new NativeArena();
  const map = arena.out("ptr");
  libc().loading.dlinfo(handle, RTLD_DI_LINKMAP, map.$address);
  const name = readCString(struct(link_map).at(map.value).l_name);
  if (name.startsWith("/")) return name;
  // Found through a relative path: groups are bound later, when the current folder may have changed.
  const folder = arena.bytes(4096); // PATH_MAX
  libc().loading.dlinfo(handle, RTLD_DI_ORIGIN, folder.address);
  return `${readField(folder.bytes)}/${name.slice(name.lastIndexOf("/") + 1)}`;
}

/** A path to try with `dlopen`, or a pattern that no file matches, which the error lists. */
interface Candidate {
  readonly path: string;
  readonly exists?: boolean;
}

// law ffi/candidates: ffi/library
/** Every place where the library may be, in order. */
function* candidates(description: LibraryDescription<SymbolTable>): Generator<Candidate> {
  const { override, sonames, wheels = [], homes = [], folders = [] } = description;
  const chosen = description.path ?? environment(override);
  if (chosen === "") return yield { path: chosen, exists: false }; // to the dynamic linker it names the program itself
  if (chosen !== undefined) return yield { path: chosen };

  const inFolder = function* (folder: string): Generator<Candidate> {
    for (const soname of sonames) yield* files(`${folder}/${soname}`);
  };
  for (const prefix of ["VIRTUAL_ENV", "CONDA_PREFIX"].map(environment)) {
    if (prefix === undefined) continue;
    for (const wheel of wheels) yield* inFolder(`${escaped(prefix)}/lib/python3*/site-packages/${wheel}`);
  }
  const conda = environment("CONDA_PREFIX");
  if (conda !== undefined) yield* inFolder(`${escaped(conda)}/lib`);

  for (const soname of sonames) yield { path: soname }; // the dynamic linker's own search

  for (const home of homes.map(environment)) {
    if (home === undefined) continue;
    for (const lib of ["lib64", "lib", "targets/*/lib"]) yield* inFolder(`${escaped(home)}/${lib}`);
  }
  for (const folder of folders) yield* inFolder(folder);
}

function* files(pattern: string): Generator<Candidate> {
  const found = glob(pattern);
  if (found.length === 0) yield { path: pattern, exists: false };
  for (const path of found) yield { path };
}

/** The value of an environment variable, or undefined if it is unset or empty. */
function environment(name: string): string | undefined {
  return ffiPort().env(name) || undefined;
}

/** A path as a glob pattern that matches nothing but itself. */
function escaped(path: string): string {
  return path.replace(/[\\*?[\]]/g, "\\$&");
}

/** The existing files that match a pattern, sorted. Uses libc, because Deno's own would need --allow-read. */
function glob(pattern: string): string[] {
  using arena = new NativeArena();
  const found = arena.struct(glob_t);
  try {
    if (libc().loading.glob(cString(pattern), 0, 0n, found.$address) !== 0) return [];
    const list = new DataView(ffiPort().memory(found.gl_pathv, found.gl_pathc * 8));
    return Array.from({ length: found.gl_pathc }, (_, i) => readCString(list.getBigUint64(i * 8, littleEndian)));
  } finally {
    libc().loading.globfree(found.$address);
  }
}
