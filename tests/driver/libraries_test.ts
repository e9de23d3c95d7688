/** The CUDA libraries that are found here, none of which needs a GPU. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { test } from "node:test";
import type { SymbolTable } from "../../bindings/abi.ts";
import { libcuda } from "../../src/driver/driver.ts";
import { libcudart, libnvrtc } from "../../src/driver/libraries.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { cString, readCString } from "../../src/ffi/c_string.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { missing } from "../support/missing_library.ts";
import { needs } from "../support/needs.ts";

const noDriver = missing(libcuda);

test(...needs(noDriver, "the driver has every function of the table that is not optional"), () => {
  const { functions } = openLibrary(libcuda);
  for (const [group, table] of Object.entries<SymbolTable[string]>(libcuda.symbols)) {
    const bound: Readonly<Record<string, unknown>> = functions[group as keyof typeof functions];
    for (const [name, { optional }] of Object.entries(table)) {
      assert(typeof bound[name] === "function" || (optional === true && bound[name] === null), `${group}.${name}`);
    }
  }
});

test(...needs(missing(libcudart), "libcudart reports its version and describes its errors"), () => {
  using arena = new NativeArena();
  const { opening } = openLibrary(libcudart).functions;
  const version = arena.out("i32");
  assertEquals(opening.cudaRuntimeGetVersion(version.$address), 0);
  assert(version.value >= 11000 && version.value < 20000, `${version.value}`);
  assertEquals(readCString(opening.cudaGetErrorName(2)), "cudaErrorMemoryAllocation");
  assertEquals(readCString(opening.cudaGetErrorString(2)), "out of memory");
});

test(...needs(missing(libnvrtc), "libnvrtc compiles without a GPU"), () => {
  using arena = new NativeArena();
  const { opening, program } = openLibrary(libnvrtc).functions;
  const [major, minor, out, size] = [arena.out("i32"), arena.out("i32"), arena.out("ptr"), arena.out("size")];
  assertEquals(opening.nvrtcVersion(major.$address, minor.$address), 0);
  assertMatch(`${major.value}.${minor.value}`, /^1\d\.\d+$/);
  const source = cString('extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }');
  assertEquals(program.nvrtcCreateProgram(out.$address, source, cString("twice.cu"), 0, 0n, 0n), 0);
  const handle = out.value;
  assertEquals(program.nvrtcCompileProgram(handle, 0, 0n), 0);
  assertEquals(program.nvrtcGetPTXSize(handle, size.$address), 0);
  const ptx = arena.bytes(size.value);
  assertEquals(program.nvrtcGetPTX(handle, ptx.address), 0);
  assertStringIncludes(new TextDecoder().decode(ptx.bytes), ".visible .entry twice(");
  assertEquals(program.nvrtcDestroyProgram(out.$address), 0);
});
