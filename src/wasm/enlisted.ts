/**
 * Functions of three numbers that are called by their index in a list.
 *
 * In Bun, a line of JavaScript that has called ten WebAssembly functions takes 70 ns or more per further call. So it
 * calls a single function, which calls the intended one: 5 ns.
 *
 * @module
 */
import { assembleCaller, type WasmFunction } from "./assemble.ts";
import { compile, instantiate } from "./scratch.ts";

/** The part of the WebAssembly API used here, which is missing from the types of both runtimes. */
declare const WebAssembly: {
  readonly Table: new (options: { element: "anyfunc"; initial: number }) => WasmTable;
};

interface WasmTable {
  grow(more: number): number;
  set(index: number, value: (...numbers: number[]) => number): void;
}

type Caller = (one: number, two: number, three: number, enlisted: number) => void;

/** The index of a function on the list. */
export type Enlisted = number & { readonly enlisted: true };

let list: WasmTable | undefined;
let caller: Caller | undefined;

// law wasm/enlist: wasm/enlisted
/**
 * Compiles and enlists a function permanently: the caller keeps the result.
 *
 * @param code a function with three parameters and no result
 */
export function enlist(code: WasmFunction): Enlisted {
  const table = theList();
  const compiled = compile(code);
  const index = table.grow(1);
  table.set(index, compiled);
  return index as Enlisted; // the only place that creates one
}

/** Calls a function with three 32-bit numbers. */
export function run(enlisted: Enlisted, one: number, two: number, three: number): void {
  caller ??= newCaller();
  caller(one, two, three, enlisted);
}

function newCaller(): Caller {
  return instantiate(assembleCaller(3), { t: { t: theList() } });
}

function theList(): WasmTable {
  return list ??= new WebAssembly.Table({ element: "anyfunc", initial: 0 });
}
