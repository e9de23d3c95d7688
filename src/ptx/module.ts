/**
 * A loaded PTX module: its kernels and its variables.
 *
 * @module
 */
import { PtxError } from "./error.ts";
import { type LoweredFunction, lowerFunction } from "./function.ts";
import { globalBytes, type PtxGlobal } from "./globals.ts";
import { execute, type PtxLaunch } from "./launch.ts";
import { parse } from "./parse.ts";
import { Program } from "./program.ts";
import type { Meaning } from "./operands.ts";
import type { ModuleSyntax, Variable } from "./syntax.ts";
import { systemCalls } from "./system_calls.ts";

/** A kernel of a module. */
export interface PtxKernel {
  /** As written in the text: mangled, unless the kernel is `extern "C"`. */
  readonly name: string;
  /** Offset of each parameter in the launch's parameters, and its size in bytes. */
  readonly params: readonly { readonly offset: number; readonly size: number }[];
  /** Shared memory that its own variables take, in bytes. */
  readonly staticSharedBytes: number;
  /** Maximum number of threads per block, if the text sets one (`__launch_bounds__`). */
  readonly maxThreads?: number;
  /**
   * Runs all threads to completion.
   *
   * @throws {PtxFault} for anything that a GPU would stop the kernel for, or could not be relied on to do
   * @throws {RangeError} if grid, block or parameters do not fit the kernel
   */
  run(launch: PtxLaunch): void;
}

/** A parsed module, with everything in it supported. */
export interface PtxModule {
  /** Names of the kernels. */
  readonly entries: readonly string[];
  /** The kernel of this name, or null if there is none. */
  entry(name: string): PtxKernel | null;
  /** Variables in .global and .const: the owner of the memory assigns each an address. */
  readonly globals: ReadonlyMap<string, PtxGlobal>;
}

class Kernel implements PtxKernel {
  readonly name: string;
  readonly params: readonly { readonly offset: number; readonly size: number }[];
  readonly maxThreads?: number;
  readonly #program: Program;

  constructor(
    lowered: LoweredFunction,
    functions: ReadonlyMap<string, LoweredFunction>,
    shared: ReadonlyMap<string, Variable>,
  ) {
    this.name = lowered.name;
    this.params = lowered.params;
    if (lowered.maxThreads !== null) this.maxThreads = lowered.maxThreads;
    this.#program = new Program(lowered, functions, shared);
  }

  get staticSharedBytes(): number {
    return this.#program.staticSharedBytes;
  }

  run(launch: PtxLaunch): void {
    const { grid, block, params, dynamicSharedBytes } = launch;
    for (const size of [...grid, ...block]) {
      if (!Number.isInteger(size) || size < 1) {
        throw new RangeError(`Cannot launch ${this.name}: expected positive integers for grid and block, got ${size}`);
      }
    }
    const threads = block[0] * block[1] * block[2];
    const most = Math.min(1024, this.maxThreads ?? 1024);
    if (threads > most) {
      throw new RangeError(`Cannot launch ${this.name}: a block has at most ${most} threads, got ${threads}`);
    }
    const last = this.params.at(-1);
    const bytes = last === undefined ? 0 : last.offset + last.size;
    if (params.byteLength < bytes) {
      throw new RangeError(`Cannot launch ${this.name}: its parameters are ${bytes} bytes, got ${params.byteLength}`);
    }
    if (!Number.isInteger(dynamicSharedBytes) || dynamicSharedBytes < 0) {
      throw new RangeError(`Cannot launch ${this.name}: shared memory is bytes, got ${dynamicSharedBytes}`);
    }
    execute(this.#program, launch);
  }
}

/** Module-scope variables, sorted by state space. */
function sortVariables(syntax: ModuleSyntax): { globals: Map<string, PtxGlobal>; shared: Map<string, Variable> } {
  const globals = new Map<string, PtxGlobal>();
  const shared = new Map<string, Variable>();
  for (const variable of syntax.variables) {
    const { space, name, line, size } = variable;
    if (globals.has(name) || shared.has(name)) throw new PtxError(line, `${name} is declared twice`);
    if (space === "shared") {
      if (size === null && !variable.external) throw new PtxError(line, `the shared variable ${name} has no size`);
      shared.set(name, variable);
    } else if (space === "global" || space === "const") {
      if (variable.external) throw new PtxError(line, `${name} is declared .extern: modules are not linked`);
      globals.set(name, globalBytes(variable));
    } else {
      throw new PtxError(line, `a variable of .${space} outside a function is not supported`);
    }
  }
  for (const [name, { relocations }] of globals) {
    for (const { symbol } of relocations) {
      if (!globals.has(symbol)) throw new PtxError(0, `${name} has the address of ${symbol}, which is not declared`);
    }
  }
  return { globals, shared };
}

/** Checks that every call matches the declaration of its callee. */
function checkCalls(functions: ReadonlyMap<string, LoweredFunction>): void {
  for (const { calls } of functions.values()) {
    for (const { name, line, results, args } of calls) {
      const callee = functions.get(name);
      const system = systemCalls.get(name);
      const sizes = (list: readonly { size: number }[]): string => list.map(({ size }) => size).join(", ");
      const fits = (params: string, made: string) => params === args.join(", ") && made === results.join(", ");
      if (callee !== undefined) {
        if (fits(sizes(callee.params), sizes(callee.results))) continue;
        throw new PtxError(line, `call of ${name} does not match its declaration in line ${callee.line}`);
      }
      if (system === undefined) throw new PtxError(line, `call of ${name}, which has no body in this module`);
      if (!fits(system.params.join(", "), system.results.join(", "))) {
        throw new PtxError(line, `call of ${name} does not match the driver's function of that name`);
      }
    }
  }
}

/**
 * Loads a module.
 *
 * @param text as NVRTC emits it
 * @throws {PtxError} for an unsupported instruction, modifier or directive, with its line
 *
 * @example
 * ```ts ignore
 * const kernel = loadPtx(ptx).entry("saxpy");
 * kernel?.run({ grid: [4, 1, 1], block: [256, 1, 1], params, dynamicSharedBytes: 0, memory, globals: new Map() });
 * ```
 */
export function loadPtx(text: string): PtxModule {
  const syntax = parse(text);
  const { globals, shared } = sortVariables(syntax);
  const spaces = new Map(syntax.variables.map(({ name, space }) => [name, space]));
  const resolve = (name: string): Meaning | null => {
    const space = spaces.get(name);
    if (space === "shared") return { kind: "shared", name };
    return space === "global" || space === "const" ? { kind: "global", name, space } : null;
  };
  const functions = new Map<string, LoweredFunction>();
  for (const one of syntax.functions) {
    if (one.body === null) continue;
    if (functions.has(one.name)) throw new PtxError(one.line, `the function ${one.name} is defined twice`);
    functions.set(one.name, lowerFunction(one, one.body, resolve));
  }
  checkCalls(functions);
  const kernels = new Map<string, Kernel>();
  for (const lowered of functions.values()) {
    if (lowered.isEntry) kernels.set(lowered.name, new Kernel(lowered, functions, shared));
  }
  return { entries: [...kernels.keys()], entry: (name) => kernels.get(name) ?? null, globals };
}
