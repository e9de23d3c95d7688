/** Copies between any two layouts, at least one on a device, by every path, against copying byte by byte. */
import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, CudaError, StridedMemoryView } from "../../mod.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { check, fc } from "../support/property.ts";
import { copiedByHand, pattern } from "../support/arrays.ts";
import { assertCopied, copies, isWide, turnedCopies, view } from "../support/copies.ts";
import { room } from "../support/buffers.ts";

test("a copy between any two layouts, anywhere, moves each element to its place and touches nothing else", () => {
  check(
    fc.property(copies, (copy) => {
      using cuda = Cuda.simulate({ seed: copy.seed });
      assertCopied(cuda, copy);
    }),
    30,
  );
});

test("narrow elements are turned over, four bytes at a time where addresses and rows are multiples of four", () => {
  check(
    fc.property(turnedCopies, (copy) => {
      using cuda = Cuda.simulate({ seed: copy.seed });
      const side = isWide(copy) ? 128 / copy.itemsize : 64;
      assertStringIncludes(assertCopied(cuda, copy), `in tiles of ${side} x ${side} through shared memory`);
    }),
    10,
  );
});

test("a copy within one memory gives the elements from before it, however the two overlap", () => {
  check(
    fc.property(copies.filter(({ source, destination }) => source.size > 0 && destination.size > 0), (one) => {
      const { itemsize, seed, source, destination } = one;
      using cuda = Cuda.simulate({ seed });
      const { device, allocate, read } = room(cuda);
      const before = pattern(Math.max(source.size, destination.size), seed);
      using buffer = allocate("device", before);
      view(buffer, destination, itemsize).copyFrom(view(buffer, source, itemsize));
      device.synchronize();
      assertEquals(read(buffer), copiedByHand(source, before, destination, before));
    }),
    18,
  );
});

// Its program stayed loaded until it was collected, and kept the device's context past the end of its Cuda.
test("a copy whose kernel is not found unloads the program", () => {
  const cuda = Cuda.simulate();
  const simulated = SimulatedDriver.of(cuda.driver);
  const device = cuda.device(0);
  {
    using stream = device.createStream();
    using view = StridedMemoryView.full([3, 4], 3, { dtype: "float32", device, stream });
    simulated?.failNth("cuModuleGetFunction", 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    assertThrows(() => view.T.copy(), CudaError, "OUT_OF_MEMORY");
  }
  device.synchronize();
  cuda.close();
  assertEquals([simulated?.calls("cuModuleLoadDataEx"), simulated?.calls("cuModuleUnload")], [1, 1]);
});
