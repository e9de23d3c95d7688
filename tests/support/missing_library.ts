/**
 * Whether a library is on this machine.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { LibraryNotFoundError } from "../../src/ffi/errors.ts";
import { type LibraryDescription, openLibrary } from "../../src/ffi/library.ts";

/** Why a library cannot be opened, and what to install; null if it can. */
export function missing<T extends SymbolTable>(library: LibraryDescription<T>): string | null {
  try {
    openLibrary(library);
    return null;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return `no ${library.name}: ${error.remedy.split(". To open")[0]}`;
    throw error;
  }
}
