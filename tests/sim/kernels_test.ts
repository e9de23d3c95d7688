/** Kernels on the simulator: PTX in stream order, on checked memory, with sticky failures. */
import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertInstanceOf,
  assertStringIncludes,
  assertThrows,
} from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, CudaError, DeviceMemoryResource, HostMemoryResource, type KernelArg } from "../../mod.ts";
import { PtxError, PtxFault, type PtxKernel } from "../../src/ptx/mod.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { Raw } from "../support/raw_driver.ts";
import { simulateDriver } from "../../src/sim/mod.ts";

const arrays = readFileSync(new URL("../data/ptx/arrays.sm_90.ptx", import.meta.url), "utf8");

const schedules = ["latest", "random", "round-robin"] as const;

/** A kernel stub: a function that receives the launch. */
function stub(run: PtxKernel["run"], params: PtxKernel["params"] = [{ offset: 0, size: 8 }]) {
  const entry: PtxKernel = { name: "stub", params, staticSharedBytes: 0, run };
  return (text: string) => ({
    entries: [text],
    entry: (name: string) => name === "stub" ? entry : null,
    globals: new Map(),
  });
}

test("saxpy out of NVRTC runs between an upload and a download, in the order of its stream", () => {
  for (const schedule of schedules) {
    using cuda = Cuda.simulate({ schedule, seed: 3 });
    const device = cuda.device(0);
    using stream = device.createStream();
    using program = device.loadPtx(arrays);
    const memory = new DeviceMemoryResource(device);
    const n = 1000;
    using host = new HostMemoryResource().allocate(4 * n);
    const numbers = new Float32Array(host.bytes().buffer);
    numbers.forEach((_, i) => numbers[i] = i);
    using x = memory.allocate(4 * n, { stream });
    using y = memory.allocate(4 * n, { stream });
    x.copyFrom(host, { stream });
    y.copyFrom(host, { stream });
    const args: KernelArg[] = [["float32", 0.5], x, y, ["int32", n]];
    program.kernel("saxpy").launch(stream, 8, 128, args);
    y.copyTo(host, { stream });
    stream.synchronize();
    for (const i of [0, 1, 500, n - 1]) assertAlmostEquals(numbers[i] ?? NaN, i * 1.5, 1e-3);
  }
});

test("arguments are taken at the launch, and the kernel runs when its stream reaches it", () => {
  const seen: number[] = [];
  const loadPtx = stub(({ params, grid, block, dynamicSharedBytes }) => {
    const value = new DataView(params.buffer, params.byteOffset).getBigUint64(0, true);
    seen.push(Number(value), ...grid, ...block, dynamicSharedBytes);
  });
  using cuda = Cuda.simulate({ schedule: "latest", loadPtx });
  const device = cuda.device(0);
  using stream = device.createStream();
  using program = device.loadPtx("anything");
  const kernel = program.kernel("stub");
  kernel.launch(stream, [2, 3, 4], [5, 6], [7n], { sharedBytes: 8 });
  kernel.launch(stream, 1, 1, [9n]); // through the same memory as the first
  assertEquals(seen, []);
  stream.synchronize();
  assertEquals(seen, [7, 2, 3, 4, 5, 6, 1, 8, 9, 1, 1, 1, 1, 1, 1, 0]);
});

/**
 * Kernels that never end: alone, at a barrier that all threads keep reaching, and waiting for memory to change.
 */
const endless = `.version 8.0
.target sm_90
.address_size 64
.visible .entry spin(.param .u64 flag) {
AGAIN: bra AGAIN;
}
.visible .entry meet(.param .u64 flag) {
AGAIN: bar.sync 0;
  bra AGAIN;
}
.visible .entry await(.param .u64 flag) {
  .reg .b32 %r; .reg .b64 %d; .reg .pred %p;
  ld.param.u64 %d, [flag];
AGAIN: ld.volatile.global.u32 %r, [%d];
  setp.ne.s32 %p, %r, 1;
  @%p bra AGAIN;
}`;

test("an endless kernel is stopped as by a watchdog: the context is lost, and the error says by what and why", () => {
  for (const schedule of schedules) {
    for (const name of ["spin", "meet", "await"]) {
      for (let seed = 0; seed < 8; seed++) {
        const cuda = Cuda.simulate({ schedule, seed, maxInstructions: 100_000 });
        const device = cuda.device(0);
        const memory = new DeviceMemoryResource(device);
        const error = assertThrows(() => { // the first call after the kernel reports the error
          const stream = device.createStream();
          const flag = memory.allocate(4, { stream });
          device.loadPtx(endless).kernel(name).launch(stream, 2, 32, [flag]);
          stream.synchronize();
        }, CudaError);
        assertEquals(error.codeName, "CUDA_ERROR_LAUNCH_TIMEOUT");
        for (const words of ["the launch timed out", name, "100000 instructions", "maxInstructions"]) {
          assertStringIncludes(error.message, words);
        }
        assert(error.isSticky);
        assertInstanceOf(error.cause, PtxFault);
        assertEquals(error.cause.kind, "instruction limit");
        assertThrows(() => device.synchronize(), CudaError, "CUDA_ERROR_LAUNCH_TIMEOUT");
        cuda.close();
      }
    }
  }
});

test("a launch may run as many instructions as its limit, all threads together, and not one more", () => {
  const counting = `.version 8.0
.target sm_90
.address_size 64
.visible .entry count(.param .u32 n) {
  .reg .b32 %r<2>; .reg .pred %p;
  ld.param.u32 %r0, [n];
  mov.u32 %r1, 0;
AGAIN: add.s32 %r1, %r1, 1;
  setp.lt.s32 %p, %r1, %r0;
  @%p bra AGAIN;
  ret;
}`;
  const runs = (maxInstructions: number, seed: number): boolean => {
    using cuda = Cuda.simulate({ schedule: "latest", seed, maxInstructions });
    const device = cuda.device(0);
    device.loadPtx(counting).kernel("count").launch(device.defaultStream, 3, 33, [["int32", 100]]);
    try {
      device.synchronize();
      return true;
    } catch (error) {
      assertInstanceOf(error, CudaError);
      assertEquals(error.codeName, "CUDA_ERROR_LAUNCH_TIMEOUT");
      return false;
    }
  };
  const needed = 3 * 33 * (2 + 3 * 100 + 1); // in any order of the threads
  for (let seed = 0; seed < 24; seed++) {
    assert(runs(needed, seed), `seed ${seed}`);
    assert(!runs(needed - 1, seed), `seed ${seed}`);
    assert(runs(Infinity, seed), `seed ${seed}`);
  }
});

test("a kernel's limit is a thousand million instructions unless the program sets another, which is checked", () => {
  const seen: (number | undefined)[] = [];
  const loadPtx = stub(({ maxInstructions }) => void seen.push(maxInstructions));
  for (const options of [{}, { maxInstructions: 7 }]) {
    using cuda = Cuda.simulate({ ...options, schedule: "latest", loadPtx });
    const device = cuda.device(0);
    device.loadPtx("anything").kernel("stub").launch(device.defaultStream, 1, 1, [0n]);
    device.synchronize();
  }
  assertEquals(seen, [1e9, 7]);
  for (const wrong of [0, -1, 1.5, NaN]) {
    assertThrows(() => Cuda.simulate({ maxInstructions: wrong }), RangeError, "expected an integer of at least 1");
  }
});

test("an address that is not allocated ends the context's work, and every later call says so", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const stream = device.createStream();
  const program = device.loadPtx(arrays);
  const memory = new DeviceMemoryResource(device);
  const x = memory.allocate(400, { stream });
  const y = memory.allocate(400, { stream });
  program.kernel("saxpy").launch(stream, 1, 128, [["float32", 0.5], x, y, ["int32", 101]]); // one too many
  const error = assertThrows(() => stream.synchronize(), CudaError, "an illegal memory access was encountered");
  assertEquals(error.codeName, "CUDA_ERROR_ILLEGAL_ADDRESS");
  assertThrows(() => device.synchronize(), CudaError, "CUDA_ERROR_ILLEGAL_ADDRESS");
  assertThrows(() => memory.allocate(16, { stream }), CudaError, "CUDA_ERROR_ILLEGAL_ADDRESS");
  const cause = SimulatedDriver.of(cuda.driver)?.lastKernelError;
  assertInstanceOf(cause, PtxFault);
  assertStringIncludes(String(cause.cause), "nothing is allocated there");
  for (const one of [x, y]) one.close(); // there is nothing left to free, and the error has been reported
});

test("memory that is freed, or not yet allocated, in stream order is out of reach for kernels of other streams", () => {
  const use = (
    missing: "nothing" | "the wait for the allocation" | "the wait before the free",
    seed: number,
  ): boolean => {
    using cuda = Cuda.simulate({ schedule: "random", seed });
    const device = cuda.device(0);
    const [home, other] = [device.createStream(), device.createStream()];
    const program = device.loadPtx(arrays);
    const x = new DeviceMemoryResource(device).allocate(512, { stream: home });
    if (missing !== "the wait for the allocation") other.wait(home);
    program.kernel("saxpy").launch(other, 1, 128, [["float32", 1], x, x, ["int32", 128]]);
    try { // the first call after the kernel reports the error
      if (missing !== "the wait before the free") home.wait(other);
      x.close();
      device.synchronize();
      return true;
    } catch (error) {
      assertInstanceOf(error, CudaError);
      assertEquals(error.codeName, "CUDA_ERROR_ILLEGAL_ADDRESS");
      return false;
    }
  };
  const seeds = Array.from({ length: 32 }, (_, seed) => seed);
  assert(seeds.every((seed) => use("nothing", seed)));
  assert(seeds.some((seed) => !use("the wait for the allocation", seed)));
  assert(seeds.some((seed) => !use("the wait before the free", seed)));
});

test("a kernel reaches another device's pool only where it was granted", () => {
  const launch = (granted: boolean): () => void => {
    const simulated = simulateDriver({ devices: 2, schedule: "latest" });
    const raw = new Raw(simulated.driver, 2);
    raw.use(1);
    const there = raw.allocate(64, 2n);
    raw.ok(simulated.driver.context.cuCtxSynchronize());
    if (granted) raw.ok(raw.grant(raw.pool(1), 0));
    raw.use(0);
    const { module, kernel, context } = simulated.driver;
    const image = raw.arena.cString(arrays);
    const loaded = raw.word((out) => module.cuModuleLoadData(out, image));
    const saxpy = raw.word((out) => module.cuModuleGetFunction(out, loaded, cString("saxpy")));
    const values = raw.arena.bytes(32);
    const view = new DataView(values.bytes.buffer, values.bytes.byteOffset);
    view.setFloat32(0, 1, true);
    view.setBigUint64(8, there, true);
    view.setBigUint64(16, there, true);
    view.setInt32(24, 16, true);
    const pointers = raw.arena.bytes(32);
    const list = new DataView(pointers.bytes.buffer, pointers.bytes.byteOffset);
    [0, 8, 16, 24].forEach((at, i) => list.setBigUint64(8 * i, values.address + BigInt(at), true));
    raw.ok(kernel.cuLaunchKernel(saxpy, 1, 1, 1, 32, 1, 1, 0, 0n, pointers.address, 0n));
    return () => raw.ok(context.cuCtxSynchronize());
  };
  launch(true)();
  assertThrows(launch(false), Error, "CUDA_ERROR_ILLEGAL_ADDRESS");
});

test("kernels reach page-locked memory of the host, and no other", () => {
  const simulated = simulateDriver({
    schedule: "latest",
    loadPtx: stub(({ memory, params }) => {
      const address = new DataView(params.buffer).getBigUint64(0, true);
      const { bytes, offset } = memory.view(address, 4, "write");
      bytes.setInt32(offset, 42, true);
    }),
  });
  using raw = new Raw(simulated.driver);
  raw.use(0);
  const { module, kernel, context } = simulated.driver;
  const loaded = raw.word((out) => module.cuModuleLoadData(out, raw.arena.cString("anything")));
  const found = raw.word((out) => module.cuModuleGetFunction(out, loaded, cString("stub")));
  const pinned = raw.pinned(64);
  const value = raw.arena.out("ptr");
  const list = raw.arena.out("ptr");
  list.value = value.$address;
  value.value = pinned.address + 8n;
  raw.ok(kernel.cuLaunchKernel(found, 1, 1, 1, 1, 1, 1, 0, 0n, list.$address, 0n));
  raw.ok(context.cuCtxSynchronize());
  assertEquals(pinned.bytes[8], 42);
  value.value = raw.pageable(64).address;
  raw.ok(kernel.cuLaunchKernel(found, 1, 1, 1, 1, 1, 1, 0, 0n, list.$address, 0n));
  // A stub throws the memory's error as it is; the interpreter turns it into a fault.
  assertThrows(() => context.cuCtxSynchronize(), Error, "nothing is allocated there");
});

test("PTX that is not understood is refused when it is loaded, and the simulator reports why", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  assertThrows(() => device.loadPtx("this is no PTX"), CudaError, "CUDA_ERROR_INVALID_IMAGE");
  assertInstanceOf(SimulatedDriver.of(cuda.driver)?.lastPtxError, PtxError);
  assertThrows(() => device.loadPtx("\x7fELF"), CudaError, "CUDA_ERROR_NOT_SUPPORTED"); // a cubin
});

test("launches that no GPU could do are refused", () => {
  using cuda = Cuda.simulate({ loadPtx: stub(() => {}) });
  const device = cuda.device(0);
  using stream = device.createStream();
  using program = device.loadPtx("anything");
  const kernel = program.kernel("stub");
  const refused = (grid: [number, number, number], block: [number, number, number]) =>
    assertThrows(() => kernel.launch(stream, grid, block, [0n]), CudaError, "CUDA_ERROR_INVALID_VALUE");
  refused([1, 1, 1], [1025, 1, 1]);
  refused([1, 1, 1], [32, 33, 1]);
  refused([1, 1, 1], [1, 1, 65]);
  refused([1, 65536, 1], [1, 1, 1]);
  const { kernel: raw } = cuda.driver;
  assertEquals(raw.cuLaunchKernel(kernel.handle, 1, 1, 1, 1, 1, 1, 49153, stream.handle, 0n, 0n), 1); // no opt-in
  using own = new Raw(cuda.driver);
  const [value, list] = [own.arena.out("ptr"), own.arena.out("ptr")];
  list.value = value.$address;
  const extra = own.arena.bytes(16, 8).address; // begins with CU_LAUNCH_PARAM_END
  const launch = (params: bigint, extra: bigint) =>
    raw.cuLaunchKernel(kernel.handle, 1, 1, 1, 1, 1, 1, 0, stream.handle, params, extra);
  assertEquals(launch(list.$address, extra), 1, "arguments in two forms");
  own.ok(launch(list.$address, 0n));
  for (const attribute of [-1, 1000]) assertEquals(raw.cuFuncSetAttribute(kernel.handle, attribute, 0), 1);
  assertEquals(kernel.occupancy(), { blockSize: 1024, minGridSize: 32 });
  assertThrows(() => program.kernel("nothing"), CudaError, "CUDA_ERROR_NOT_FOUND");
  assertThrows(() => kernel.attribute("NUM_REGS"), CudaError, "CUDA_ERROR_NOT_SUPPORTED");
});

test("a graph of kernels runs them again at each launch, with the arguments of the capture", () => {
  const seen: bigint[] = [];
  const loadPtx = stub(({ params }) => void seen.push(new DataView(params.buffer).getBigUint64(0, true)));
  using cuda = Cuda.simulate({ schedule: "latest", loadPtx });
  const device = cuda.device(0);
  using stream = device.createStream();
  using program = device.loadPtx("anything");
  using raw = new Raw(cuda.driver);
  const { capture, graph } = cuda.driver;
  raw.ok(capture.cuStreamBeginCapture_v2(stream.handle, 0));
  program.kernel("stub").launch(stream, 1, 1, [1n]);
  program.kernel("stub").launch(stream, 1, 1, [2n]);
  const captured = raw.word((out) => capture.cuStreamEndCapture(stream.handle, out));
  stream.synchronize();
  assertEquals(seen, []);
  const exec = raw.word((out) => graph.cuGraphInstantiateWithFlags(out, captured, 0n));
  raw.ok(graph.cuGraphLaunch(exec, stream.handle));
  raw.ok(graph.cuGraphLaunch(exec, stream.handle));
  raw.ok(graph.cuGraphExecDestroy(exec));
  raw.ok(graph.cuGraphDestroy(captured));
  stream.synchronize();
  assertEquals(seen, [1n, 2n, 1n, 2n]);
});

test("launches of a graph do not overlap, whichever streams they are on", () => {
  for (let seed = 0; seed < 32; seed++) {
    const seen: bigint[] = [];
    const loadPtx = stub(({ params }) => void seen.push(new DataView(params.buffer).getBigUint64(0, true)));
    using cuda = Cuda.simulate({ seed, loadPtx });
    const device = cuda.device(0);
    const streams = [device.createStream(), device.createStream()] as const;
    using program = device.loadPtx("anything");
    using raw = new Raw(cuda.driver);
    const { capture, graph } = cuda.driver;
    raw.ok(capture.cuStreamBeginCapture_v2(streams[0].handle, 0));
    for (const value of [1n, 2n]) program.kernel("stub").launch(streams[0], 1, 1, [value]);
    const captured = raw.word((out) => capture.cuStreamEndCapture(streams[0].handle, out));
    const exec = raw.word((out) => graph.cuGraphInstantiateWithFlags(out, captured, 0n));
    for (const one of streams) raw.ok(graph.cuGraphLaunch(exec, one.handle));
    device.synchronize();
    assertEquals(seen, [1n, 2n, 1n, 2n], `seed ${seed}`);
    for (const one of streams) one.close();
  }
});
