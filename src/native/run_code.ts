/**
 * Running our own machine code on the JavaScript thread, with all that it works on in memory.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { ffiPort, type HandleArgument, type NativeFunction } from "../ffi/mod.ts";

// It is `bsearch` that calls, as in call_pointer.ts. All arguments are prepared, and nobody wants its result: so it takes
// 5 ns in Bun instead of 35.
const callers = {
  bsearch: { args: ["handle", "handle", "handle", "handle", "handle"], returns: "void" },
} as const satisfies SymbolTable[string];

let caller: { readonly bsearch: NativeFunction<typeof callers.bsearch> } | undefined;
let one: HandleArgument = 1n;

/**
 * Runs code with the address of the memory that it works on as its first argument.
 *
 * @param code of ours, from `assembleHere`
 * @param memory stays where it is while the code runs; whoever calls answers for what is in it
 */
export function runCode(code: HandleArgument, memory: HandleArgument): void {
  if (caller === undefined) {
    caller = ffiPort().bind("libc.so.6", 0n, callers);
    one = ffiPort().handle(1n);
  }
  caller.bsearch(memory, memory, one, one, code);
}
