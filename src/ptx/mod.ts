/**
 * PTX without a GPU: parses what NVRTC compiles CUDA C++ to, and executes it thread by thread. Unsupported PTX is an
 * error when a module is loaded, never skipped; docs/ptx.md lists what is supported, and how faithfully.
 *
 * The room imports nothing: device memory, the addresses of variables and a sink for printed text are passed in with
 * each launch. PTX text becomes tokens, then a syntax tree (`parse.ts`), then functions with resolved names and
 * instructions compiled to closures (`function.ts`, `instructions/`), then a program that lays the functions out
 * (`program.ts`). A launch binds the program to memory and runs its threads in turns (`launch.ts`).
 *
 * @module
 */
export { PtxError, PtxFault, type PtxFaultKind } from "./error.ts";
export type { PtxMemory } from "./execution_state.ts";
export { initialBytes } from "./globals.ts";
export { loadPtx, type PtxKernel, type PtxModule } from "./module.ts";
export { parse } from "./parse.ts";
export type { FunctionSyntax, Instruction, Operand, Statement } from "./syntax.ts";
