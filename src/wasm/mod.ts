/**
 * Loops over numbers for which TypeScript is too slow, as WebAssembly with 16-byte vectors.
 *
 * The room knows nothing of arrays. A function is a list of instructions, written by the code that needs it, often for
 * one width or one pair of types; `assemble.ts` turns it into a module's bytes with the table in `opcodes.ts`, on first
 * use and in less than a millisecond, and the engine validates and compiles them. All functions work in one memory
 * (`scratch.ts`); operands are copied into it in blocks that stay in the CPU cache, and results are copied out.
 *
 * Where one line calls many functions, they are enlisted and called by their index (`enlisted.ts`).
 *
 * Such code is the same on every CPU and cannot crash: all it can corrupt is that memory.
 *
 * @module
 */
export type { WasmFunction } from "./assemble.ts";
export { enlist, type Enlisted, run } from "./enlisted.ts";
export type { Instruction } from "./opcodes.ts";
export { compile, scratch } from "./scratch.ts";
