/**
 * The runtimes' own `node:` modules, loaded at first use: importing them statically costs Deno 5 to 25 ms each, which
 * every program that merely imports Causeway would pay.
 *
 * @module
 */
import { FfiError } from "./errors.ts";

/** The modules that are used, with their types. */
interface Builtins {
  readonly "node:buffer": typeof import("node:buffer");
  readonly "node:crypto": typeof import("node:crypto");
  readonly "node:dns/promises": typeof import("node:dns/promises");
  readonly "node:fs": typeof import("node:fs");
  readonly "node:net": typeof import("node:net");
  readonly "node:process": typeof import("node:process");
  readonly "node:timers": typeof import("node:timers");
  readonly "node:timers/promises": typeof import("node:timers/promises");
  readonly "node:url": typeof import("node:url");
  readonly "node:zlib": typeof import("node:zlib");
}

/** A module of the runtime. */
export function nodeBuiltin<Name extends keyof Builtins>(name: Name): Builtins[Name] {
  const process = Reflect.get(globalThis, "process") as unknown as { getBuiltinModule(name: string): unknown };
  const module = process.getBuiltinModule(name);
  if (module === undefined) throw new FfiError(`Cannot load ${name}: this runtime does not have it`);
  return module as Builtins[Name]; // the runtime's module of that name
}
