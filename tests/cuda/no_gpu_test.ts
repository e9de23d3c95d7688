/** What the real driver, runtime and compiler do on a machine without a GPU. */
import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { SymbolTable } from "../../bindings/abi.ts";
import { Cuda, CudaError, LibraryNotFoundError } from "../../mod.ts";
import { libcuda } from "../../src/driver/driver.ts";
import { libcudart, libnvrtc } from "../../src/driver/libraries.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { type LibraryDescription, openLibrary } from "../../src/ffi/library.ts";
import { cString, readCString } from "../../src/ffi/c_string.ts";
import { needs } from "../support/needs.ts";

function missing<T extends SymbolTable>(library: LibraryDescription<T>): string | null {
  try {
    openLibrary(library);
    return null;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return `no ${library.name}: ${error.remedy.split(". To open")[0]}`;
    throw error;
  }
}

const { available } = Cuda.probe();
const noDriver = missing(libcuda);
const withoutGpu = available ? "this machine has a GPU, the test is of one without" : noDriver;

test(...needs(withoutGpu, "the driver without a GPU: opening says NO_DEVICE, probing says what to check"), () => {
  const error = assertThrows(() => Cuda.open(), CudaError, "cuInit failed with CUDA_ERROR_NO_DEVICE (100)");
  assertEquals([error.code, error.codeName, error.call], [100, "CUDA_ERROR_NO_DEVICE", "cuInit"]);
  const probe = Cuda.probe();
  assertEquals([probe.available, probe.searched], [false, []]);
  assertStringIncludes(probe.reason, "nvidia-smi");
});

test(...needs(noDriver, "the driver has every function of the table that is not optional"), () => {
  const { functions } = openLibrary(libcuda);
  for (const [group, table] of Object.entries<SymbolTable[string]>(libcuda.symbols)) {
    const bound: Readonly<Record<string, unknown>> = functions[group as keyof typeof functions];
    for (const [name, { optional }] of Object.entries(table)) {
      assert(typeof bound[name] === "function" || (optional === true && bound[name] === null), `${group}.${name}`);
    }
  }
});

test("without a driver, opening lists where it was looked for and probing does not throw", () => {
  if (noDriver === null) return assertEquals(Cuda.probe().searched, []);
  const error = assertThrows(() => Cuda.open(), LibraryNotFoundError, "libcuda.so.1");
  assertEquals(Cuda.probe().searched, error.attempts.map(({ path }) => path));
});

test(...needs(missing(libcudart), "libcudart says its version and puts its errors into words"), () => {
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
