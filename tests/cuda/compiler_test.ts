/** CUDA C++ is compiled without a GPU, and what was compiled is kept. */
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Cuda, HostMemoryResource } from "../../mod.ts";
import { cached } from "../../src/cuda/code_cache.ts";
import { CompileError, compileSource } from "../../src/cuda/compiler.ts";
import { libnvrtc } from "../../src/cuda/libraries.ts";
import { LibraryNotFoundError } from "../../src/ffi/errors.ts";
import { libc } from "../../src/ffi/libc.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { cString } from "../../src/ffi/text.ts";
import { needs } from "../support/needs.ts";

function missingCompiler(): string | null {
  try {
    openLibrary(libnvrtc);
    return null;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return "no libnvrtc: pip install nvidia-cuda-nvrtc in a virtualenv";
    throw error;
  }
}

const missing = missingCompiler();
const source = `extern "C" __global__ void scale(float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= a;
}`;

test(...needs(missing, "a program becomes PTX, or machine code that begins as ELF does"), () => {
  const request = { name: "scale.cu", source, options: ["--gpu-architecture=compute_80"], target: "ptx" } as const;
  const ptx = new TextDecoder().decode(compileSource(request));
  assertStringIncludes(ptx, ".visible .entry scale(");
  assert(ptx.endsWith("\0"));
  const cubin = compileSource({ ...request, options: ["--gpu-architecture=sm_80"], target: "cubin" });
  assertEquals(Array.from(cubin.subarray(0, 4)), [0x7f, 0x45, 0x4c, 0x46]);
});

test(...needs(missing, "an error shows what the compiler said and the line that it is about"), () => {
  const wrong = source.replace("x[i] *= a", "x[i] *= b");
  const request = { name: "my scale.cu", source: wrong, options: [], target: "ptx" } as const;
  const error = assertThrows(() => compileSource(request), CompileError, 'identifier "b" is undefined');
  assertStringIncludes(error.message, "Cannot compile my scale.cu:");
  assertStringIncludes(error.message, "  3 |   if (i < n) x[i] *= b;");
  assertStringIncludes(error.log, "my scale.cu(3)");
  assertThrows(() => compileSource({ ...request, options: ["--no-such-option"] }), CompileError, "no-such-option");
});

/** Sets the variable for both readers: libc's (Deno's port) and the runtime's (Bun's). */
function setCache(folder: string): void {
  process.env["CAUSEWAY_CACHE"] = folder;
  libc().loading.setenv(cString("CAUSEWAY_CACHE"), cString(folder), 1);
}

test(...needs(missing, "code that includes files is compiled anew each time: they may have changed"), () => {
  const cuda = Cuda.simulate();
  const folder = mkdtempSync(join(tmpdir(), "causeway-include-"));
  setCache(join(folder, "cache"));
  try {
    const device = cuda.device(0);
    using buffer = device.memory.allocate(4);
    const { defaultStream: stream } = device;
    const run = (value: number) => {
      writeFileSync(join(folder, "value.h"), `#define VALUE ${value}\n`);
      const source = '#include "value.h"\nextern "C" __global__ void put(int *at) { *at = VALUE; }';
      using program = device.compile(source, { options: [`-I${folder}`] });
      program.kernel("put").launch(stream, 1, 1, [buffer]);
      using seen = new HostMemoryResource().allocate(4);
      buffer.copyTo(seen, { stream });
      stream.synchronize();
      return new DataView(seen.bytes().buffer, seen.bytes().byteOffset).getInt32(0, true);
    };
    assertEquals([run(1), run(2)], [1, 2]);
    device.compile('extern "C" __global__ void nothing() {}').close();
    assertEquals(readdirSync(join(folder, "cache")).length, 1, "and what includes none is kept");
  } finally {
    setCache("off");
    rmSync(folder, { recursive: true });
    cuda.close();
  }
});

test("code is made once per key, and again if the file is damaged", () => {
  const folder = mkdtempSync(join(tmpdir(), "causeway-cache-"));
  setCache(folder);
  try {
    let made = 0;
    const make = () => Uint8Array.of(1, 2, 3, ++made);
    assertEquals(cached(["a", "b"], make), Uint8Array.of(1, 2, 3, 1));
    assertEquals(cached(["a", "b"], make), Uint8Array.of(1, 2, 3, 1));
    assertEquals(cached(["ab"], make), Uint8Array.of(1, 2, 3, 2));
    assertEquals(cached(["a", "b"], make), Uint8Array.of(1, 2, 3, 1));
    const files = readdirSync(folder);
    assertEquals(files.length, 2);
    for (const file of files) {
      const bytes = readFileSync(join(folder, file));
      writeFileSync(join(folder, file), bytes.subarray(0, bytes.length - 1));
    }
    assertEquals(cached(["a", "b"], make), Uint8Array.of(1, 2, 3, 3));
    setCache("off");
    assertEquals(cached(["a", "b"], make), Uint8Array.of(1, 2, 3, 4));
    setCache("/proc/no/such/folder");
    assertEquals(cached(["a", "b"], make), Uint8Array.of(1, 2, 3, 5));
  } finally {
    setCache("off");
    rmSync(folder, { recursive: true });
  }
});
