/** Contexts of the simulator: what is destroyed with them, and what they wait for. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { CU_STREAM, CU_STREAM_CAPTURE_MODE, CU_STREAM_PER_THREAD, CUresult } from "../../bindings/cuda_types.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { check, fc } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

test("a context's end ends its peers' access and its events, also when the context is retained again", () => {
  const { driver: { context, event }, driver } = simulateDriver({ devices: 2 });
  const raw = new Raw(driver, 2);
  raw.use(1);
  const made = raw.word((out) => event.cuEventCreate(out, 2));
  raw.ok(event.cuEventQuery(made));
  raw.use(0);
  raw.ok(context.cuCtxEnablePeerAccess(raw.context(1), 0));
  raw.ok(context.cuDevicePrimaryCtxRelease_v2(1));
  assertEquals(event.cuEventQuery(made), CUresult.CUDA_ERROR_INVALID_HANDLE);
  raw.word((out) => context.cuDevicePrimaryCtxRetain(out, 1));
  assertEquals(event.cuEventQuery(made), CUresult.CUDA_ERROR_INVALID_HANDLE);
  assertEquals(context.cuCtxDisablePeerAccess(raw.context(1)), CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  raw.ok(context.cuCtxEnablePeerAccess(raw.context(1), 0));
});

test("a context's end ends its modules and their kernels, also when the context is retained again", () => {
  const { driver } = simulateDriver();
  const { context, kernel, memory, module } = driver;
  const raw = new Raw(driver);
  raw.use(0);
  const image = raw.arena.cString(
    `.version 8.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .b32 one;\n.visible .entry none() { ret; }`,
  );
  const loaded = raw.word((out) => module.cuModuleLoadData(out, image));
  const none = raw.word((out) => module.cuModuleGetFunction(out, loaded, cString("none")));
  const launch = () => kernel.cuLaunchKernel(none, 1, 1, 1, 1, 1, 1, 0, 0n, 0n, 0n);
  raw.ok(launch());
  raw.ok(context.cuDevicePrimaryCtxRelease_v2(0));
  raw.word((out) => context.cuDevicePrimaryCtxRetain(out, 0));
  raw.use(0);
  assertEquals(launch(), CUresult.CUDA_ERROR_INVALID_HANDLE);
  assertEquals(module.cuModuleUnload(loaded), CUresult.CUDA_ERROR_INVALID_HANDLE);
  const made = Array.from({ length: 3 }, () => raw.word((out) => memory.cuMemAlloc_v2(out, 4n)));
  assertEquals(new Set(made).size, 3);
  raw.ok(context.cuDevicePrimaryCtxRelease_v2(0));
});

test("a context's end ends the captures that began there, and no capture of another context goes on without its streams", () => {
  const { driver } = simulateDriver({ devices: 2 });
  const { capture, context, event, graph, memory, stream } = driver;
  const raw = new Raw(driver, 2);
  const out = raw.arena.out("ptr");
  const create = () => raw.word((at) => stream.cuStreamCreate(at, CU_STREAM.NON_BLOCKING));
  const begin = (on: bigint) => raw.ok(capture.cuStreamBeginCapture_v2(on, CU_STREAM_CAPTURE_MODE.GLOBAL));
  raw.use(1);
  const [there, mark] = [create(), raw.word((at) => event.cuEventCreate(at, 2))];
  begin(there);
  raw.ok(event.cuEventRecord(mark, there));
  raw.use(0);
  raw.ok(stream.cuStreamWaitEvent(CU_STREAM_PER_THREAD, mark, 0));
  const here = create();
  begin(here);
  const captured = raw.allocate(64, here);
  raw.ok(context.cuDevicePrimaryCtxRelease_v2(0));
  raw.word((at) => context.cuDevicePrimaryCtxRetain(at, 0));
  raw.use(0);
  assertEquals(raw.int((at) => capture.cuStreamIsCapturing(CU_STREAM_PER_THREAD, at)), 0);
  begin(CU_STREAM_PER_THREAD);
  assertEquals(raw.allocate(64, CU_STREAM_PER_THREAD), captured, "the addresses are released");
  raw.ok(capture.cuStreamEndCapture(CU_STREAM_PER_THREAD, out.$address));
  raw.ok(graph.cuGraphDestroy(out.value));
  const ended = capture.cuStreamEndCapture(there, out.$address);
  assertEquals(ended, CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  raw.ok(memory.cuMemFree_v2(raw.word((at) => memory.cuMemAlloc_v2(at, 64n)))); // which no capture forbids any more
});

test("a context's end frees once what a free in stream order has not: after a fault, or on another context's stream", () => {
  for (const failed of [true, false]) {
    const { driver } = simulateDriver({ memory: 2 ** 22, schedule: "latest" });
    const { context, kernel, memory, module, pool, stream } = driver;
    using raw = new Raw(driver);
    raw.use(0);
    const elsewhere = raw.stream(1);
    const ending = raw.word((out) => context.cuCtxCreate_v2(out, 0, 0));
    const image = raw.arena.cString(
      `.version 8.0\n.target sm_90\n.address_size 64\n.visible .entry fail() { trap; }`,
    );
    const loaded = raw.word((out) => module.cuModuleLoadData(out, image));
    const fail = raw.word((out) => module.cuModuleGetFunction(out, loaded, cString("fail")));
    const most = raw.word((out) => memory.cuMemAlloc_v2(out, 3n << 20n));
    if (failed) raw.ok(kernel.cuLaunchKernel(fail, 1, 1, 1, 1, 1, 1, 0, 0n, 0n, 0n));
    raw.ok(pool.cuMemFreeAsync(most, failed ? 0n : elsewhere));
    raw.ok(context.cuCtxDestroy_v2(ending));
    raw.use(0);
    const again = raw.word((out) => memory.cuMemAlloc_v2(out, 3n << 20n));
    raw.ok(stream.cuStreamSynchronize(elsewhere));
    const out = raw.arena.out("ptr");
    assertEquals(memory.cuMemAlloc_v2(out.$address, 3n << 20n), CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    raw.ok(memory.cuMemFree_v2(again));
  }
});

test("a context that is made to wait for several events waits for all of them, in any order", () => {
  const schedules = fc.constantFrom("latest" as const, "random" as const, "round-robin" as const);
  check(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.nat(), schedules, fc.nat(), (count, order, schedule, seed) => {
      const { driver } = simulateDriver({ schedule, seed });
      const { context, copy, event, fill, stream } = driver;
      using raw = new Raw(driver);
      raw.use(0);
      const [written, read] = [raw.pinned(count), raw.pinned(count)];
      written.bytes.fill(0);
      const events = Array.from({ length: count }, (_, i) => {
        const [lane, mark] = [raw.stream(1), raw.event()];
        raw.ok(fill.cuMemsetD8Async(written.address + BigInt(i), 1, 1n, lane));
        raw.ok(event.cuEventRecord(mark, lane));
        return mark;
      });
      if (context.cuCtxWaitEvent === null) throw new Error("the simulator has it");
      for (let i = 0; i < count; i++) raw.ok(context.cuCtxWaitEvent(raw.context(0), events[(i + order) % count] ?? 0n));
      const last = raw.stream(1);
      raw.ok(copy.cuMemcpyAsync(read.address, written.address, BigInt(count), last));
      raw.ok(stream.cuStreamSynchronize(last));
      assertEquals([...read.bytes], Array.from({ length: count }, () => 1));
    }),
    200,
  );
});
