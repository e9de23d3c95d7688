/**
 * PTX without a GPU: reads what NVRTC makes of CUDA C++, and executes it thread by thread. What is not understood is an
 * error when a module is loaded, never skipped; docs/ptx.md lists what is understood, and how faithfully.
 *
 * The room imports nothing: device memory, the addresses of variables and a place for printed text are passed in with
 * each launch. A text becomes tokens, a syntax tree (`parse.ts`), functions whose names are resolved and whose
 * instructions are compiled to closures (`function.ts`, `instructions/`), and a program with a place for each function
 * (`program.ts`). A launch binds that to memory and runs threads in turns (`launch.ts`).
 *
 * @module
 */
export { PtxError, PtxFault, type PtxFaultKind } from "./error.ts";
export type { PtxMemory } from "./execution_state.ts";

export { loadPtx, type PtxKernel, type PtxModule } from "./module.ts";
export { parse } from "./parse.ts";
export type { FunctionSyntax, Instruction, Operand, Statement } from "./syntax.ts";
