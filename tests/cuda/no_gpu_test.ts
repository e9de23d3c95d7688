/** What opening CUDA does on a machine without a GPU. */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, CudaError, LibraryNotFoundError } from "../../mod.ts";
import { libcuda } from "../../src/driver/driver.ts";
import { missing } from "../support/missing_library.ts";
import { needs } from "../support/needs.ts";

const { available } = Cuda.probe();
const noDriver = missing(libcuda);
const withoutGpu = available ? "this machine has a GPU, the test is of one without" : noDriver;

test(...needs(withoutGpu, "the driver without a GPU: opening says NO_DEVICE, probing says what to check"), () => {
  const error = assertThrows(() => Cuda.open(), CudaError, "cuInit failed with CUDA_ERROR_NO_DEVICE (100)");
  assertEquals([error.code, error.codeName, error.call], [100, "CUDA_ERROR_NO_DEVICE", "cuInit"]);
  assertStringIncludes(error.message, "nvidia-smi");
  assertStringIncludes(error.message, "Cuda.simulate()"); // which users without a GPU may not know
  const probe = Cuda.probe();
  assertEquals([probe.available, probe.searched], [false, []]);
  assertStringIncludes(probe.reason, "nvidia-smi");
});

test("without a driver, opening lists where it was looked for and probing does not throw", () => {
  if (noDriver === null) return assertEquals(Cuda.probe().searched, []);
  const error = assertThrows(() => Cuda.open(), LibraryNotFoundError, "libcuda.so.1");
  assertEquals(Cuda.probe().searched, error.attempts.map(({ path }) => path));
});
