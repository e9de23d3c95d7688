/**
 * How to find libpython, the interpreter as a library.
 *
 * @module
 */
import { cpython } from "../../bindings/cpython.ts";
import type { LibraryDescription } from "../ffi/mod.ts";

/** How to find libpython when no interpreter reports where its library is. */
export const pythonLibrary: LibraryDescription<typeof cpython> = {
  name: "libpython",
  symbols: cpython,
  override: "CAUSEWAY_LIBPYTHON",
  sonames: [15, 14, 13, 12, 11, 10, 9].map((minor) => `libpython3.${minor}.so.1.0`),
  remedy: "Install the interpreter as a library: `apt-get install libpython3.11` on Debian 12, `libpython3.12` on " +
    "Ubuntu 24.04.",
};
