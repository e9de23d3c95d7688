/**
 * A stream known to be idle is not queried. After any work is enqueued on it, in any way, it is queried again; a stream
 * whose handle was given out is always queried.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { Cuda, type CudaStream, DeviceMemoryResource, StridedMemoryView } from "../../mod.ts";
import { internals } from "../../src/device/stream_internals.ts";
import type { StreamState } from "../../src/device/stream_state.ts";
import { intercept } from "../support/intercept.ts";
import { check, fc } from "../support/property.ts";

/** The handle, read without the stream's knowledge. */
function handleOf(stream: CudaStream): bigint {
  return (stream[internals] as StreamState).handle;
}

const acts = [
  "fill",
  "copy",
  "rows",
  "wait",
  "record",
  "allocate",
  "free",
  "share",
  "behind",
  "ask",
  "synchronize",
] as const;

test("a stream is ready only if the driver says so, however work was enqueued on it", () => {
  const seen = new Map<string, number>();
  check(
    fc.property(fc.array(fc.constantFrom(...acts), { maxLength: 25 }), fc.boolean(), (program, nonBlocking) => {
      const cuda = Cuda.simulate({ schedule: "latest" });
      const device = cuda.device(0);
      const stream = device.createStream({ nonBlocking });
      const other = device.createStream({ nonBlocking: true });
      using pool = new DeviceMemoryResource(device, {});
      const [one, two] = [pool.allocate(4096, { stream }), pool.allocate(4096, { stream })];
      const held: Disposable[] = [];
      let isShared = false;
      for (const act of program) {
        if (act === "fill") one.fill(1, { stream });
        else if (act === "copy") one.copyFrom(two, { stream });
        else if (act === "rows") {
          const [from, to] = [two, one].map((buffer) =>
            StridedMemoryView.fromBuffer(buffer, { shape: [8, 8], strides: [16, 1], dtype: "uint8" })
          );
          if (from !== undefined) to?.copyFrom(from, { stream });
        } else if (act === "wait") {
          two.fill(2, { stream: other });
          stream.wait(other);
        } else if (act === "record") stream.record().close();
        else if (act === "allocate") held.push(pool.allocate(64, { stream }));
        else if (act === "free") held.pop()?.[Symbol.dispose]();
        else if (act === "share") isShared = stream.handle !== 0n;
        else if (act === "behind" && isShared) {
          device.withContext(() => cuda.driver.fill.cuMemsetD8Async(one.ptr, 3, 4096n, handleOf(stream)));
        } else if (act === "synchronize") stream.synchronize();
        const isReady = stream.isReady;
        const answer = device.withContext(() => cuda.driver.stream.cuStreamQuery(handleOf(stream)));
        if (isReady) assertEquals(answer, CUresult.CUDA_SUCCESS, `after ${act}`);
        seen.set(`${act} ${isReady}`, (seen.get(`${act} ${isReady}`) ?? 0) + 1);
      }
      for (const owned of [...held, one, two]) owned[Symbol.dispose]();
      stream.close();
      other.close();
      cuda.close();
    }),
    300,
  );
  assert((seen.get("fill false") ?? 0) > 0, "a fill is in flight sometimes");
  assert((seen.get("behind false") ?? 0) > 0, "and one that the stream does not know of");
});

test("a stream known to be idle is not queried, if it is non-blocking and its handle was never read", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  let asked = 0;
  const undo = intercept(cuda.driver, "stream", ({ cuStreamQuery }) => ({
    cuStreamQuery: (...args) => {
      asked++;
      return cuStreamQuery(...args);
    },
  }));
  const questions = (stream: CudaStream) => {
    stream.synchronize();
    asked = 0;
    for (let i = 0; i < 5; i++) assertEquals(stream.isReady, true);
    stream.waitUntilReady();
    return asked;
  };
  using stream = device.createStream({ nonBlocking: true });
  assertEquals(questions(stream), 0);
  assert(stream.isDone);
  assertEquals(asked, 1, "isDone returns the driver's answer");
  // Any access that leads to the driver causes one more query.
  const ways: readonly (() => unknown)[] = [
    () => stream.argument,
    () => stream.handleFor("use"),
    () => stream.enqueue(() => CUresult.CUDA_SUCCESS),
    () => stream.record().close(),
    () => stream.wait(device.createStream({ nonBlocking: true })),
    () => stream.capture(() => {}).close(),
  ];
  for (const way of ways) {
    stream.synchronize();
    asked = 0;
    way();
    while (!stream.isReady);
    assertEquals([stream.isReady, asked > 0], [true, true], `${way}`);
  }
  assertEquals(questions(stream), 0, "none of them gives the handle out");
  void stream.handle;
  assertEquals(questions(stream), 5);
  undo();
});

test("a blocking stream comes after what is enqueued on the legacy default stream, also when it is idle itself", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream({ nonBlocking: false });
  using buffer = new DeviceMemoryResource(device).allocate(4096, { stream });
  stream.waitUntilReady();
  stream.synchronize();
  device.withContext(() => cuda.driver.fill.cuMemsetD8Async(buffer.ptr, 1, 4096n, 0n)); // as another library does
  assertEquals(stream.isReady, false);
});

test("asking whether a closed stream is ready is an error", () => {
  using cuda = Cuda.simulate();
  const stream = cuda.device(0).createStream({ nonBlocking: true });
  stream.synchronize();
  assert(stream.isReady);
  stream.close();
  assertThrows(() => stream.isReady, TypeError, "closed CudaStream");
});
