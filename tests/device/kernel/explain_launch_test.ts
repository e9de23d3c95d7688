/** Launches that the driver refuses: the error names the limit that is exceeded, and none that is respected. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, CudaError } from "../../../mod.ts";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import { check, fc } from "../../support/property.ts";

const ptx = `.version 7.0
.target sm_52
.address_size 64
.visible .entry any() { ret; }
.visible .entry small() .maxntid 64, 1, 1 { ret; }`;

test("a launch is refused exactly if it exceeds a limit, and the error names those that it exceeds", () => {
  const extent = (most: number) =>
    fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 70 }), fc.constantFrom(most, most + 1));
  const grids = fc.tuple(fc.integer({ min: 1, max: 9 }), extent(65535), extent(65535));
  const blocks = fc.tuple(extent(1024), extent(1024), extent(64));
  check(
    fc.property(fc.constantFrom("any", "small"), grids, blocks, (name, grid, block) => {
      using cuda = Cuda.simulate({ schedule: "latest" }); // launched work never runs
      const device = cuda.device(0);
      const stream = device.createStream();
      using program = device.loadPtx(ptx);
      const threads = block[0] * block[1] * block[2];
      const most = name === "small" ? 64 : 1024;
      const [ofThreads, ofBlock] = [threads > most, block[0] > 1024 || block[1] > 1024 || block[2] > 64];
      const ofGrid = grid[1] > 65535 || grid[2] > 65535;
      const launch = () => program.kernel(name).launch(stream, grid, block, []);
      if (!ofThreads && !ofBlock && !ofGrid) {
        using graph = stream.capture(launch); // nor is the captured launch refused
        return assertEquals(graph.nodes.length, 1);
      }
      const { codeName, message } = assertThrows(launch, CudaError, `cuLaunchKernel of ${name} failed`);
      assertEquals(codeName, "CUDA_ERROR_INVALID_VALUE");
      assertEquals(
        message.includes(`has ${threads} threads: ${name} takes at most ${most} on device 0`),
        ofThreads,
        message,
      );
      assertEquals(message.includes("declared limits; other kernels up to 1024"), ofThreads && most < 1024, message);
      assertEquals(message.includes(`A block of (${block.join(", ")}) is too large`), ofBlock && !ofThreads, message);
      assertEquals(message.includes(`A grid of (${grid.join(", ")}) is too large`), ofGrid, message);
      assert(!message.includes("the cause is something else"), message);
    }),
    300,
  );
});

test("where no limit is exceeded the error says so, and where none can be queried it is the driver's", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using program = device.loadPtx(ptx);
  const kernel = program.kernel("any");
  const simulated = SimulatedDriver.of(cuda.driver);
  const launch = () => kernel.launch(stream, 2, 3, []);
  launch();
  const unknown = "the cause is something else";
  for (const [code, says] of [[1, unknown], [701, unknown], [719, "lost"]] as const) {
    simulated?.failNth("cuLaunchKernel", 1, code);
    const { message } = assertThrows(launch, CudaError, says);
    assertEquals(message.includes("a block of (3, 1, 1) with 0 bytes of shared memory"), code !== 719, message);
  }
  simulated?.failNth("cuLaunchKernel", 1, 1);
  simulated?.failNth("cuFuncGetAttribute", 1, 1);
  const { message } = assertThrows(launch, CudaError, "cuLaunchKernel of any failed with CUDA_ERROR_INVALID_VALUE");
  assertEquals(message.includes("reason"), false, message);
  launch();
  stream.synchronize();
});
