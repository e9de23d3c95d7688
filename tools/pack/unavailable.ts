/**
 * The package's exports on Node, and in a Bun that is too old for the package's other files: pure code works, and any
 * other export says when used which runtimes have it. Imports succeed, so that a program for several runtimes can
 * decide later.
 *
 * @module
 */
import process from "node:process";
import { FfiError } from "../../src/ffi/errors.ts";
import { tooOld } from "../../src/ffi/oldest_runtimes.ts";

export { FfiError, LibraryNotFoundError } from "../../src/ffi/errors.ts";
export { tooOld } from "../../src/ffi/oldest_runtimes.ts";

/** A bundler that targets Node chooses these files, too, as Deno's `require` does; its output may run elsewhere. */
function wayOut(): string {
  const bun = process.versions["bun"];
  const problem = bun === undefined ? undefined : tooOld("bun", bun);
  if (problem !== undefined) return problem;
  return Reflect.has(globalThis, "Bun") || Reflect.has(globalThis, "Deno")
    ? "a bundler or a test runner has chosen its files for Node, or require() of Deno. Use import; resolve it with the " +
      'condition "bun" or "deno", or leave causeway external.'
    : "causeway calls native code through Deno or Bun, and this is neither. Run it with Bun 1.4 or Deno 2.9; on Node, " +
      "causeway/layout works.";
}

/**
 * Creates the stand-in for an export that cannot be used here.
 *
 * @returns a value whose every use throws an {@linkcode FfiError} that names the export
 */
export function unavailable(name: string): unknown {
  const refuse = (): never => {
    throw new FfiError(`Cannot use ${name}: ${wayOut()}`);
  };
  // A program may call a class, construct it, read its static members, extend it, and test `instanceof` it.
  return new Proxy(class {}, { apply: refuse, construct: refuse, get: refuse, has: refuse, set: refuse });
}
