/**
 * Functions of three numbers that are called by what they are on a list.
 *
 * A line of JavaScript that has called ten functions of WebAssembly takes 70 ns or more for each further call in Bun. So
 * one function is called there, which calls the one that was meant: 5 ns.
 *
 * @module
 */
import { assembleCaller, type WasmFunction } from "./assemble.ts";
import { compile } from "./scratch.ts";

/** The part of WebAssembly that is used here: the types of both runtimes lack it. */
declare const WebAssembly: {
  readonly Table: new (options: { element: "anyfunc"; initial: number }) => WasmTable;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
    imports: { t: { t: WasmTable } },
  ) => { readonly exports: { readonly f: Caller } };
};

interface WasmTable {
  readonly length: number;
  grow(more: number): number;
  set(index: number, value: (...numbers: number[]) => number): void;
}

type Caller = (one: number, two: number, three: number, enlisted: number) => void;

/** A function on the list. */
export type Enlisted = number & { readonly enlisted: true };

let list: WasmTable | undefined;
let caller: Caller | undefined;

// law wasm/enlist: wasm/enlisted
/**
 * Has a function compiled and enlisted, for ever: whoever asks keeps the result.
 *
 * @param code of three parameters and without a result
 */
export function enlist(code: WasmFunction): Enlisted {
  const table = list ??= new WebAssembly.Table({ element: "anyfunc", initial: 0 });
  const compiled = compile(code);
  const index = table.grow(1);
  table.set(index, compiled);
  return index as Enlisted; // only here one is made
}

/** Calls a function with three 32-bit numbers. */
export function run(enlisted: Enlisted, one: number, two: number, three: number): void {
  caller ??= newCaller();
  caller(one, two, three, enlisted);
}

function newCaller(): Caller {
  const table = list ??= new WebAssembly.Table({ element: "anyfunc", initial: 0 });
  return new WebAssembly.Instance(new WebAssembly.Module(assembleCaller(3)), { t: { t: table } }).exports.f;
}
