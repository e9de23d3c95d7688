/**
 * What the package exports on Node: what is pure works, and whatever else is used says which runtimes have it. Imports
 * succeed, so that a program for several runtimes can decide later.
 *
 * @module
 */
import { FfiError } from "../../src/ffi/errors.ts";

export { FfiError, LibraryNotFoundError } from "../../src/ffi/errors.ts";

/** A bundler for Node chooses these files, too, and what it writes may run elsewhere. */
function wayOut(): string {
  return Reflect.has(globalThis, "Bun") || Reflect.has(globalThis, "Deno")
    ? 'a bundler has chosen its files for Node. Bundle with the condition "bun" or "deno", or leave causeway external.'
    : "causeway calls native code through Deno or Bun, and this is neither. Run it with Bun 1.4 or Deno 2.9; on Node, " +
      "causeway/layout works.";
}

/**
 * Stands for an export that cannot be used here.
 *
 * @returns whatever is done with it throws an {@linkcode FfiError} that names it
 */
export function unavailable(name: string): unknown {
  const refuse = (): never => {
    throw new FfiError(`Cannot use ${name}: ${wayOut()}`);
  };
  // A class may be called, constructed, asked for a static member, extended, and stand behind `instanceof`.
  return new Proxy(class {}, { apply: refuse, construct: refuse, get: refuse, has: refuse, set: refuse });
}
