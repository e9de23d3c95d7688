/**
 * Runs our own machine code on the JavaScript thread, with all its operands in memory.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { ffiPort, type HandleArgument, type NativeFunction } from "../ffi/mod.ts";

// `bsearch` makes the call, as in call_pointer.ts. With all arguments prepared and its result unused, it takes 5 ns in
// Bun instead of 35.
const callers = {
  bsearch: { args: ["handle", "handle", "handle", "handle", "handle"], returns: "void" },
} as const satisfies SymbolTable[string];

let caller: { readonly bsearch: NativeFunction<typeof callers.bsearch> } | undefined;
let one: HandleArgument = 1n;

/**
 * Runs code with the address of its memory as the first argument.
 *
 * @param code our own, from `assembleHere`
 * @param memory must not move while the code runs; the caller is responsible for its contents
 */
export function runCode(code: HandleArgument, memory: HandleArgument): void {
  if (caller === undefined) {
    caller = ffiPort().bind("libc.so.6", 0n, callers);
    one = ffiPort().handle(1n);
  }
  caller.bsearch(memory, memory, one, one, code);
}
