/**
 * Where libucp is found, and the functions of libucp and of libucs, which it loads.
 *
 * @module
 */
import { ucp, ucs } from "../../bindings/ucp.ts";
import { cString, FfiError, type Functions, libc, type LibraryDescription, openLibrary } from "../ffi/mod.ts";

const symbols = { ...ucp, ...ucs } as const;

/** The functions of libucp, and `ucs_status_string`. */
export type UcpFunctions = Functions<typeof symbols>;

/** How libucp is found: as Debian and Ubuntu package it, or in NVIDIA's wheels, which support CUDA. */
export const libucp: LibraryDescription<typeof symbols> = {
  name: "libucp",
  symbols,
  override: "CAUSEWAY_LIBUCP",
  sonames: ["libucp.so.0"],
  wheels: ["libucx/lib"],
  folders: ["/opt/ucx/lib", "/usr/local/ucx/lib"],
  remedy: "Install UCX 1.13 or newer: `apt-get install libucx0` on Debian or Ubuntu, or `pip install libucx-cu13` in " +
    "an active virtualenv for a UCX that knows CUDA.",
};

let opened: string | undefined;

/** Sets an environment variable of UCX, unless it is set. */
function setDefault(name: string, value: string): void {
  libc().loading.setenv(cString(name), cString(value), 0);
}

// law ucx/openUcp: ucx/worker
/**
 * Opens libucp.
 *
 * @param path the file to open; by default found as {@linkcode libucp} describes
 * @throws {FfiError} if the process has already opened another libucp: the two would share the libraries that they load
 */
export function openUcp(path?: string): { readonly path: string; readonly functions: UcpFunctions } {
  // Else UCX takes the signal of a terminal that closes, which is to end the process, as one to debug itself.
  setDefault("UCX_DEBUG_SIGNO", "0");
  // Else it takes SIGSEGV from JavaScriptCore, for which it may mean no more than an error of a WebAssembly module.
  setDefault("UCX_ERROR_SIGNALS", "");
  const library = openLibrary(path === undefined ? libucp : { ...libucp, path });
  opened ??= library.path;
  if (library.path !== opened) {
    throw new FfiError(
      `Cannot open ${library.path}: this process has already opened ${opened}. Use that, or another process.`,
    );
  }
  return library;
}
