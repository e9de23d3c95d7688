/** CUDA C++ is compiled without a GPU, and the compiled program is cached. */
import { assert, assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { Cuda, HostMemoryResource } from "../../../mod.ts";
import { cached } from "../../../src/device/kernel/code_cache.ts";
import { CompileError, compileSource } from "../../../src/device/kernel/compiler.ts";
import { libnvrtc } from "../../../src/driver/libraries.ts";
import { LibraryNotFoundError } from "../../../src/ffi/errors.ts";
import { libc } from "../../../src/ffi/libc.ts";
import { openLibrary } from "../../../src/ffi/library.ts";
import { cString } from "../../../src/ffi/c_string.ts";
import { isBun, runScriptForJson } from "../../support/child.ts";
import { needs } from "../../support/needs.ts";
import { answering, missingPrompts } from "../../support/prompts.ts";
import { scratchFolder } from "../../support/scratch.ts";

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

test(...needs(missing, "an error shows the compiler's message and the line that it is about"), () => {
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

/** How a program can depend on a file, with the options required. */
const ways: Readonly<
  Record<string, (path: string) => { readonly head: string; readonly options?: readonly string[] }>
> = {
  quoted: (path) => ({ head: `#include "${path}"` }),
  "in angles": () => ({ head: "#include <value.h>" }),
  "through a macro": (path) => ({ head: `#define FILE "${path}"\n#include FILE` }),
  "in two lines": (path) => ({ head: `#inc\\\nlude "${path}"` }),
  "in two lines of Windows": (path) => ({ head: `#inc\\\r\nlude "${path}"` }),
  "in two lines with trigraphs": (path) => ({ head: `??=inc??/\nlude "${path}"`, options: ["--std=c++11"] }),
  "after a comment": (path) => ({ head: `/* a */ # /* b */ include /* c */ "${path}"` }),
  "after a comment of two lines": (path) => ({ head: `/* a\n */#include "${path}"` }),
  "by a digraph": (path) => ({ head: `%:include "${path}"` }),
  next: (path) => ({ head: `#include_next "${path}"` }),
  "by an option": (path) => ({ head: "", options: [`--pre-include=${path}`] }),
  "by an option of two parts": (path) => ({ head: "", options: ["-include", path] }),
  "by its existence": (path) => ({ head: existing(`__has_include("${path}.2")`) }),
  "by its existence, put together": (path) => ({
    head: `#define JOIN(a, b) a##b\n${existing(`JOIN(__has_in, clude)("${path}.2")`)}`,
  }),
  "by its existence, put together by an option": (path) => ({
    head: existing(`JOIN(__has_in, clude)("${path}.2")`),
    options: ["-DJOIN(a,b)=a##b"],
  }),
};

function existing(condition: string): string {
  return `#if ${condition}\n#define VALUE 2\n#else\n#define VALUE 1\n#endif`;
}

test(...needs(missing, "a program reflects its files' current content, however it depends on them"), () => {
  const cuda = Cuda.simulate();
  const folder = mkdtempSync(join(tmpdir(), "causeway-header-"));
  const cache = join(folder, "cache");
  setCache(cache);
  try {
    const device = cuda.device(0);
    using buffer = device.memory.allocate(4);
    using seen = new HostMemoryResource().allocate(4);
    const { defaultStream: stream } = device;
    const path = join(folder, "value.h");
    const run = (source: string, options: readonly string[]) => {
      using program = device.compile(source, { options });
      program.kernel("put").launch(stream, 1, 1, [buffer]);
      buffer.copyTo(seen, { stream });
      stream.synchronize();
      return new DataView(seen.bytes().buffer, seen.bytes().byteOffset).getInt32(0, true);
    };
    for (const [name, way] of Object.entries(ways)) {
      const { head, options = [] } = way(path);
      const values = [1, 2].map((value) => {
        writeFileSync(path, `#define VALUE ${value}\n`);
        if (value === 2) writeFileSync(`${path}.2`, "");
        const source = `${head}\nextern "C" __global__ void put(int *at) { *at = VALUE; }`;
        return run(source, [...options, `-I${folder}`]);
      });
      rmSync(`${path}.2`);
      assertEquals(values, [1, 2], name);
    }
    assertEquals(existsSync(cache), false);
    const constant = 'extern "C" __global__ void put(int *at) { *at = VALUE; }';
    const options = ["-DVALUE=5", `-I${folder}`, "--std=c++17", "--use_fast_math", "-default-device"];
    assertEquals([1, 2].map(() => run(constant, options)), [5, 5]);
    assertEquals(readdirSync(cache).length, 1, "and a program without dependencies is kept");
  } finally {
    setCache("off");
    rmSync(folder, { recursive: true });
    cuda.close();
  }
});

test("code is generated once per key, and again if the file is damaged", () => {
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
    assertEquals(cached(["a", "b"], make), Uint8Array.of(1, 2, 3, 5));
    setCache("/proc/no/such/folder");
    assertEquals(cached(["a", "b"], make), Uint8Array.of(1, 2, 3, 6));
  } finally {
    setCache("off");
    rmSync(folder, { recursive: true });
  }
});

test("code that cannot be kept leaves no file behind", () => {
  const folder = scratchFolder();
  setCache(folder);
  try {
    const make = () => Uint8Array.of(1, 2, 3);
    cached(["key"], make);
    const [file = ""] = readdirSync(folder);
    rmSync(join(folder, file));
    mkdirSync(join(folder, file)); // no file can be moved there
    assertEquals(cached(["key"], make), make());
    assertEquals(readdirSync(folder), [file]);
  } finally {
    setCache("off");
  }
});

// The cache was not used unless all of the disk could be.
test("Deno's program has a cache if it may use that folder, and does without one otherwise", async () => {
  const folder = scratchFolder();
  const script = new URL("./cached_child.ts", import.meta.url);
  const isMade = async (...permissions: string[]) => {
    const env = { CAUSEWAY_CACHE: undefined, XDG_CACHE_HOME: folder };
    const [made, code] = await runScriptForJson(script, { permissions: ["--allow-ffi", ...permissions], env }) as [
      boolean,
      number[],
    ];
    assertEquals(code, [1, 2, 3]);
    return made;
  };
  const own = `${folder}/causeway`;
  const neither = [await isMade(), await isMade(`--allow-write=${own}`), await isMade(`--allow-read=${own}`)];
  assertEquals(neither, isBun ? [true, false, false] : [true, true, true]);
  const both = [`--allow-read=${own}`, `--allow-write=${own}`];
  assertEquals([await isMade(...both), await isMade(...both)], [!isBun, false]);
});

test(...needs(missingPrompts, "nobody is asked for a cache"), async () => {
  setCache(scratchFolder());
  const { questions, last } = await answering("y", new URL("./cached_child.ts", import.meta.url), [], ["--allow-ffi"]);
  setCache("off");
  assertEquals([questions, last], [[], "[true,[1,2,3]]"]);
});
