/**
 * Loops over numbers for which TypeScript is too slow, as WebAssembly with its vectors of 16 bytes.
 *
 * The room knows nothing of arrays. A function is a list of instructions, written by whoever needs it, often for one
 * width or one pair of types; `assemble.ts` turns it into a module's bytes with the table in `opcodes.ts`, at first use
 * and in less than a millisecond, and the engine checks them and compiles. All functions work in one memory
 * (`scratch.ts`), into which operands are copied in blocks that stay in the processor's cache, and results out of it.
 *
 * Where one line calls many functions they are enlisted, and called by their numbers (`enlisted.ts`).
 *
 * Such code is the same on every processor, and it cannot crash: what it could spoil is that memory.
 *
 * @module
 */
export type { WasmFunction } from "./assemble.ts";
export { enlist, type Enlisted, run } from "./enlisted.ts";
export type { Instruction } from "./opcodes.ts";
export { compile, scratch } from "./scratch.ts";
