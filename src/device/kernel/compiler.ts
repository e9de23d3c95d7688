/**
 * Compiles CUDA C++ to PTX or machine code, with NVRTC. Needs no GPU.
 *
 * @module
 */
import { nvrtcResult } from "../../../bindings/nvrtc.ts";
import { cString, NativeArena, openLibrary, readCString } from "../../ffi/mod.ts";
import { libnvrtc } from "../../driver/mod.ts";

/** The compiler rejected a program. The message shows its output, and the source lines that it mentions. */
export class CompileError extends Error {
  /** `CompileError`. */
  override readonly name: string = "CompileError";
  /** The full output of the compiler. */
  readonly log: string;

  /** Composes the message from the log and the lines that it mentions. */
  constructor(file: string, source: string, log: string) {
    super(`Cannot compile ${file}:\n${annotate(file, source, log)}`);
    this.log = log;
  }
}

/** A source, its options and the target. */
export interface CompileRequest {
  /** Name of the source in messages. */
  readonly name: string;
  readonly source: string;
  /** Options of NVRTC, including the architecture. */
  readonly options: readonly string[];
  /** `ptx` is compiled further by the driver; `cubin` is machine code for one architecture. */
  readonly target: "ptx" | "cubin";
}

/** The version of NVRTC: `[13, 0]`. @throws {LibraryNotFoundError} if there is none */
export function compilerVersion(): [major: number, minor: number] {
  using arena = new NativeArena();
  const [major, minor] = [arena.out("i32"), arena.out("i32")];
  openLibrary(libnvrtc).functions.opening.nvrtcVersion(major.$address, minor.$address);
  return [major.value, minor.value];
}

/**
 * Compiles a program.
 *
 * @returns the code; PTX is NUL-terminated, as the driver requires
 * @throws {CompileError} if the compiler rejects it
 * @throws {LibraryNotFoundError} if there is no compiler
 */
export function compileSource({ name, source, options, target }: CompileRequest): Uint8Array<ArrayBuffer> {
  using arena = new NativeArena();
  const { program } = openLibrary(libnvrtc).functions;
  const handle = arena.out("ptr");
  check("nvrtcCreateProgram", program.nvrtcCreateProgram(handle.$address, cString(source), cString(name), 0, 0n, 0n));
  try {
    const list = arena.bytes(8 * Math.max(1, options.length));
    const pointers = new DataView(list.bytes.buffer, list.bytes.byteOffset);
    options.forEach((option, i) => pointers.setBigUint64(8 * i, arena.cString(option), true));
    const code = program.nvrtcCompileProgram(handle.value, options.length, list.address);
    const text = (size: typeof program.nvrtcGetPTXSize, get: typeof program.nvrtcGetPTX) => {
      const length = arena.out("size");
      check("NVRTC's sizes", size(handle.value, length.$address));
      const { address, bytes } = arena.bytes(Math.max(1, length.value), 8);
      check("NVRTC's results", get(handle.value, address));
      return bytes.slice(0, length.value);
    };
    if (code === nvrtcResult.NVRTC_ERROR_COMPILATION || code === nvrtcResult.NVRTC_ERROR_INVALID_OPTION) {
      const log = new TextDecoder().decode(text(program.nvrtcGetProgramLogSize, program.nvrtcGetProgramLog));
      throw new CompileError(name, source, log.replace(/\0$/, "").trim() || readCString(errorString(code)));
    }
    check("nvrtcCompileProgram", code);
    return target === "ptx"
      ? text(program.nvrtcGetPTXSize, program.nvrtcGetPTX)
      : text(program.nvrtcGetCUBINSize, program.nvrtcGetCUBIN);
  } finally {
    program.nvrtcDestroyProgram(handle.$address);
  }
}

function errorString(code: number): bigint {
  return openLibrary(libnvrtc).functions.opening.nvrtcGetErrorString(code);
}

function check(call: string, code: number): void {
  if (code !== nvrtcResult.NVRTC_SUCCESS) {
    throw new Error(`${call} failed: ${readCString(errorString(code))} (${code})`);
  }
}

/** The log, with the source line under each message that names one. */
function annotate(file: string, source: string, log: string): string {
  return withLines(log, source, new RegExp(`^${RegExp.escape(file)}\\((\\d+)\\):`));
}

/**
 * A compiler log, with the source line under each message that names one.
 *
 * @param mention matches the line number, from 1, in a message
 */
export function withLines(log: string, source: string, mention: RegExp): string {
  const lines = source.split("\n");
  return log.split("\n").flatMap((message) => {
    const line = mention.exec(message)?.[1];
    const text = line === undefined ? undefined : lines[Number(line) - 1];
    return text === undefined ? [message] : [message, `  ${line} | ${text}`];
  }).join("\n");
}
