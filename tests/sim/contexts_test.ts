/** Contexts of the simulator: what is destroyed with them, and what they wait for. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
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
