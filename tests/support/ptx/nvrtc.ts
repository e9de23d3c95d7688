/**
 * CUDA C++ to PTX, with NVRTC, which needs no GPU. The sources are in tests/data/ptx, beside the PTX compiled from
 * them, so that the interpreter is tested where there is no NVRTC, too. To regenerate that PTX:
 *
 * ```sh
 * deno run -A tests/support/ptx/nvrtc.ts
 * ```
 *
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { libnvrtc } from "../../../src/driver/libraries.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { LibraryNotFoundError } from "../../../src/ffi/errors.ts";
import { openLibrary } from "../../../src/ffi/library.ts";
import { cString } from "../../../src/ffi/c_string.ts";

const folder = fileURLToPath(new URL("../../data/ptx/", import.meta.url));

/** The sources, by name. */
export const sources = ["arrays", "strided", "convert", "control", "printing"] as const;

/** The architectures that PTX is compiled for: they have different instructions. */
export const architectures = ["sm_80", "sm_90"] as const;

/** The committed PTX of a source. */
export function committedPtx(source: (typeof sources)[number], architecture: (typeof architectures)[number]): string {
  return readFileSync(join(folder, `${source}.${architecture}.ptx`), "utf8");
}

/** What is missing to compile, or null. */
export function missingNvrtc(): string | null {
  try {
    openLibrary(libnvrtc);
    return null;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return `no libnvrtc: ${error.remedy.split(". To open")[0]}`;
    throw error;
  }
}

/**
 * Compiles CUDA C++.
 *
 * @throws {Error} with the compiler's log
 */
export function compile(source: string, architecture: string): string {
  using arena = new NativeArena();
  const { path, functions } = openLibrary(libnvrtc);
  const { program } = functions;
  const options = [`-arch=${architecture.replace("sm_", "compute_")}`, `-I${join(dirname(path), "..", "include")}`];
  const strings = options.map((option) => {
    const text = cString(option);
    const place = arena.bytes(text.length);
    place.bytes.set(text);
    return place.address;
  });
  const pointers = arena.bytes(8 * strings.length);
  const view = new DataView(pointers.bytes.buffer, pointers.bytes.byteOffset);
  strings.forEach((address, i) => view.setBigUint64(8 * i, address, true));
  const [out, size] = [arena.out("ptr"), arena.out("size")];
  program.nvrtcCreateProgram(out.$address, cString(source), cString("kernel.cu"), 0, 0n, 0n);
  const handle = out.value;
  try {
    if (program.nvrtcCompileProgram(handle, strings.length, pointers.address) !== 0) {
      program.nvrtcGetProgramLogSize(handle, size.$address);
      const log = arena.bytes(size.value);
      program.nvrtcGetProgramLog(handle, log.address);
      throw new Error(new TextDecoder().decode(log.bytes));
    }
    program.nvrtcGetPTXSize(handle, size.$address);
    const ptx = arena.bytes(size.value);
    program.nvrtcGetPTX(handle, ptx.address);
    return new TextDecoder().decode(ptx.bytes.slice(0, -1));
  } finally {
    program.nvrtcDestroyProgram(out.$address);
  }
}

/** Compiles one of the sources. */
export function compileSource(source: (typeof sources)[number], architecture: string): string {
  return compile(readFileSync(join(folder, `${source}.cu`), "utf8"), architecture);
}

if (import.meta.main) {
  for (const source of sources) {
    for (const architecture of architectures) {
      writeFileSync(join(folder, `${source}.${architecture}.ptx`), compileSource(source, architecture));
    }
  }
}
