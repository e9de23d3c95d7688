/**
 * Lazy binding: a library's functions are bound by the groups of its table, each group at its first use.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { ffiPort } from "./port.ts";
import type { Functions } from "./types.ts";

/**
 * The functions of a library that the process has open. Binding one symbol costs Deno about 140 us, hence the groups.
 *
 * The groups stay visible (`driver.stream.cuStreamQuery`) for speed: a group is the very object that the runtime made,
 * whose functions V8 calls directly. The same functions moved one by one into a flat object were measured at 72 ns a
 * call instead of 4.3 in Deno, and 6.2 instead of 2.4 in Bun.
 *
 * @param path absolute path of the library
 * @param handle the library's handle from `dlopen`, or 0n for the C library
 */
export function lazySymbols<const T extends SymbolTable>(table: T, path: string, handle: bigint): Functions<T> {
  const groups = {};
  for (const [name, group] of Object.entries(table)) {
    Object.defineProperty(groups, name, {
      enumerable: true,
      configurable: true,
      get() {
        const value = ffiPort().bind(path, handle, group);
        Object.defineProperty(groups, name, { value, enumerable: true });
        return value;
      },
    });
  }
  return groups as Functions<T>; // one property per group of the table
}
