/**
 * Options of the just-in-time compiler: which exist, which values they take, and where the log is written.
 *
 * @module
 */
import { CU_JIT, CUresult } from "../../bindings/cuda_types.ts";
import { nativeView, readInt, readWord, writeFloat, writeString, writeUint } from "./out_parameters.ts";
import { PtxError } from "../ptx/mod.ts";
import { checkConstant, refuse, unsimulated } from "./call.ts";

/** The compilation options that have an effect here. */
export interface JitOptions {
  /** Writes the error log; an empty string if there was no error. */
  report(log: string): void;
}

/** Options for code generation, which does not happen here. The driver accepts any value for them. */
const codegenOptions: ReadonlySet<number> = new Set([
  CU_JIT.MAX_REGISTERS,
  CU_JIT.THREADS_PER_BLOCK,
  CU_JIT.OPTIMIZATION_LEVEL,
  CU_JIT.TARGET_FROM_CUCONTEXT,
  CU_JIT.TARGET,
  CU_JIT.FALLBACK_STRATEGY,
  CU_JIT.GENERATE_DEBUG_INFO,
  CU_JIT.LOG_VERBOSE,
  CU_JIT.GENERATE_LINE_INFO,
  CU_JIT.FAST_COMPILE,
  CU_JIT.MIN_CTA_PER_SM,
  CU_JIT.MAX_THREADS_PER_BLOCK,
  CU_JIT.SPLIT_COMPILE,
  CU_JIT.BINARY_LOADER_THREAD_COUNT,
]);

/** Number of values of `CU_JIT_CACHE_MODE`. */
const cacheModes = 3n;

interface Log {
  address: bigint;
  capacity: number;
  /** Where the driver writes the length of the text. */
  size: bigint;
}

/**
 * Reads the options of cuModuleLoadDataEx().
 *
 * @param count number of options
 * @param options `CUjit_option[]`
 * @param values `void *[]`: some entries are the values themselves
 */
export function readJitOptions(count: number, options: bigint, values: bigint): JitOptions {
  const error: Log = { address: 0n, capacity: 0, size: 0n };
  const info: Log = { address: 0n, capacity: 0, size: 0n };
  for (let i = 0; i < count; i++) {
    const option = readInt(options + BigInt(4 * i));
    const at = values + BigInt(8 * i);
    const value = readWord(at);
    checkConstant(option, CU_JIT);
    if (option === CU_JIT.ERROR_LOG_BUFFER) error.address = value;
    else if (option === CU_JIT.INFO_LOG_BUFFER) info.address = value;
    else if (option === CU_JIT.ERROR_LOG_BUFFER_SIZE_BYTES) [error.capacity, error.size] = [unsigned(value), at];
    else if (option === CU_JIT.INFO_LOG_BUFFER_SIZE_BYTES) [info.capacity, info.size] = [unsigned(value), at];
    else if (option === CU_JIT.WALL_TIME) writeFloat(at, 0); // compiling takes no simulated time
    else if (option === CU_JIT.CACHE_MODE) {
      if (value >= cacheModes) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    } else if (!codegenOptions.has(option)) throw unsimulated("linking while a module is loaded");
  }
  return {
    report(log) {
      write(error, log);
      write(info, "");
    },
  };
}

/** The value of an option that is an `unsigned int`. */
function unsigned(value: bigint): number {
  return Number(BigInt.asUintN(32, value));
}

/** Writes a log as an H200 does: truncates text that does not fit, zeroes the rest, and stores the text's size. */
function write({ address, capacity, size }: Log, text: string): void {
  if (address === 0n || capacity === 0) return;
  new Uint8Array(nativeView(address, capacity).buffer).fill(0);
  writeString(address, capacity, text);
  if (size !== 0n) writeUint(size, Math.min(capacity, new TextEncoder().encode(text).length));
}

/** The error for text that is rejected. */
export interface JitError {
  readonly code: typeof CUresult.CUDA_ERROR_INVALID_IMAGE | typeof CUresult.CUDA_ERROR_INVALID_PTX;
  /** The log, in the format of the driver's compiler. */
  readonly log: string;
}

/** Converts an error of the interpreter to what the driver's compiler reports. */
export function jitErrorOf(text: string, error: unknown): JitError {
  if (!beginsAsPtx(text)) {
    const log = "error   : Binary format for key='0', ident='' is not recognized";
    return { code: CUresult.CUDA_ERROR_INVALID_IMAGE, log };
  }
  const line = error instanceof PtxError ? error.line : 0;
  const what = error instanceof Error ? error.message.replace(/^PTX line \d+: /, "") : String(error);
  const log = `ptxas application ptx input, line ${line}; error   : ${what}\nptxas fatal   : Ptx assembly aborted`;
  return { code: CUresult.CUDA_ERROR_INVALID_PTX, log };
}

/** Whether text begins with a directive, after comments: the driver does not recognise anything else as a program. */
function beginsAsPtx(text: string): boolean {
  return /^(?:\s|\/\/[^\n]*\n|\/\*[^]*?\*\/)*\.[a-z]/.test(text);
}
