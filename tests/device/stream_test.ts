/** Streams and events: what waits for what, what is destroyed when, and how failures are reported. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { closeSync, fstatSync, openSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { CUresult } from "../../bindings/cuda_types.ts";
import { Cuda, CudaError, CudaStream, DeviceMemoryResource, PinnedMemoryResource } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { makeOrderExplicit } from "../../src/device/mod.ts";
import { addPtx } from "../gpu/graph_behaviours.ts";
import { patiently, runScript } from "../support/child.ts";
import { intercept } from "../support/intercept.ts";
import { simulatorOf } from "../support/simulator_of.ts";

const { CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_READY, CUDA_ERROR_NOT_PERMITTED } =
  CUresult;

/** Streams that run as late as possible, and a byte that the first of them sets. */
function setUp() {
  const cuda = Cuda.simulate({ devices: 2, schedule: "latest" });
  const simulated = simulatorOf(cuda);
  const device = cuda.device(0);
  const byte = new PinnedMemoryResource(device).allocate(1);
  byte.bytes()[0] = 0;
  const [stream, other] = [device.createStream(), device.createStream()];
  return {
    ...{ cuda, simulated, device, stream, other },
    work: () => byte.fill(7, { stream }),
    seen: () => byte.bytes()[0],
  };
}

test("the host waits for a stream and for an event, a stream for an event and for another stream", () => {
  const ways: ((made: ReturnType<typeof setUp>) => void)[] = [
    ({ stream }) => stream.synchronize(),
    ({ device }) => device.synchronize(),
    ({ stream }) => stream.record().synchronize(),
    ({ stream, other }) => (other.wait(stream), other.synchronize()),
    ({ stream, other }) => (other.wait(stream.record()), other.synchronize()),
    ({ stream, other, device }) => (other.wait(stream.record(device.createEvent())), other.record().synchronize()),
  ];
  for (const wait of ways) {
    const made = setUp();
    made.work();
    made.other.synchronize(); // unrelated to it
    assertEquals(made.seen(), 0, `${wait}`);
    wait(made);
    assertEquals([made.seen(), made.stream.isDone], [7, true], `${wait}`);
  }
});

test("isDone is true only after the work has completed", () => {
  for (const ask of ["stream", "event"] as const) {
    const { stream, work, seen } = setUp();
    work();
    const event = stream.record();
    const answers: boolean[] = [];
    for (let i = 0; i < 10; i++) {
      const isDone = ask === "stream" ? stream.isDone : event.isDone;
      answers.push(isDone);
      assertEquals(isDone && seen() !== 7, false);
    }
    assertEquals([answers[0], answers.at(-1)], [false, true]);
  }
});

test("completed() settles when the work is done, and not before", async () => {
  for (const what of ["stream", "event"] as const) {
    const { stream, work, seen, simulated } = setUp();
    work();
    await (what === "stream" ? stream : stream.record()).completed();
    assertEquals(seen(), 7);
    assertEquals(simulated.live.streams, 2);
    stream.close(); // not before: an unreachable stream may be collected
  }
});

test("completed() waits for as long as the driver takes", async () => {
  const { cuda, stream } = setUp();
  let call: (() => void) | undefined;
  intercept(cuda.driver, "stream", ({ cuLaunchHostFunc }) => ({
    cuLaunchHostFunc: (...args) => (call = () => cuLaunchHostFunc(...args), 0),
  }));
  let isSettled = false;
  const settled = stream.completed().then(() => isSettled = true);
  await delay(20);
  assertEquals(isSettled, false);
  call?.();
  assert(await settled);
});

test("an event that could not be recorded is destroyed", () => {
  const { stream, simulated, device } = setUp();
  const mine = device.createEvent();
  for (const event of [undefined, mine]) {
    simulated.failNth("cuEventRecord", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    assertThrows(() => stream.record(event), CudaError, "cuEventRecord failed with CUDA_ERROR_ILLEGAL_ADDRESS");
  }
  assertEquals(simulated.live.events, 1);
});

test("a closed object, or one of another device or Cuda, neither records nor waits, without a driver call", () => {
  const { cuda, device, stream } = setUp();
  const event = device.createEvent();
  const calls: string[] = [];
  intercept(cuda.driver, "event", ({ cuEventRecord }) => ({
    cuEventRecord: (...args) => (calls.push("cuEventRecord"), cuEventRecord(...args)),
  }));
  intercept(cuda.driver, "stream", ({ cuStreamWaitEvent }) => ({
    cuStreamWaitEvent: (...args) => (calls.push("cuStreamWaitEvent"), cuStreamWaitEvent(...args)),
  }));
  const gone = device.createStream();
  gone.close();
  const left = device.createStream({ nonBlocking: false });
  left.retain(); // as a buffer does
  left.close();
  const past = device.createEvent();
  past.close();
  const there = cuda.device(1).createEvent();
  const foreign = setUp();
  const [theirStream, theirEvent] = [foreign.stream, foreign.device.createEvent()];
  for (const one of [stream, device.defaultStream]) {
    const refused: [message: string, attempt: () => void][] = [
      ["Cannot record an event in a closed CudaStream", () => gone.record()],
      ["Cannot record an event in a closed CudaStream", () => gone.record(event)],
      ["Cannot wait for anything in a closed CudaStream", () => gone.wait(event)],
      ["Cannot wait for anything in a closed CudaStream", () => gone.wait(one)],
      ["Cannot wait for a closed CudaStream", () => one.wait(gone)],
      ["Cannot wait for a closed CudaStream", () => left.waitUntilReady()],
      ["Cannot copy on a closed CudaStream", () => makeOrderExplicit(left, 8)],
      ["Cannot record a closed CudaEvent", () => one.record(past)],
      ["Cannot record a closed CudaEvent", () => cuda.device(1).defaultStream.record(past)],
      ["Cannot wait for a closed CudaEvent", () => one.wait(past)],
      ["Cannot wait for a closed CudaEvent", () => foreign.stream.wait(past)],
      ["Cannot record an event of device 1: expected one of device 0", () => one.record(there)],
      ["Cannot record an event of another Cuda", () => one.record(theirEvent)],
      ["Cannot wait for an event of another Cuda", () => one.wait(theirEvent)],
      ["Cannot wait for a stream of another Cuda", () => one.wait(theirStream)],
      ["Cannot record an event: expected a CudaEvent", () => one.record(stream as never)],
      ["Cannot wait: expected a CudaEvent or a CudaStream", () => one.wait({ device } as never)],
    ];
    for (const [message, attempt] of refused) assertThrows(attempt, TypeError, message, `${attempt}`);
  }
  assertEquals(calls, []);
  stream.wait(stream.record(event));
  assertEquals(calls, ["cuEventRecord", "cuStreamWaitEvent"], "and valid ones do");
});

test("where the driver fails to record or to wait, its error is thrown at once: a retry might hide it", () => {
  const { device, stream, simulated } = setUp();
  const event = device.createEvent();
  for (const one of [stream, device.defaultStream]) {
    simulated.failNth("cuEventRecord", 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    assertThrows(() => one.record(event), CudaError, "cuEventRecord failed with CUDA_ERROR_OUT_OF_MEMORY");
    simulated.failNth("cuStreamWaitEvent", 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    assertThrows(() => one.wait(event), CudaError, "cuStreamWaitEvent failed with CUDA_ERROR_OUT_OF_MEMORY");
  }
});

test("a process that has waited for a stream is not kept alive", patiently, async () => {
  const { code, stdout, stderr } = await runScript(new URL("./completed_child.ts", import.meta.url), {
    timeout: 20_000,
  });
  assertEquals([code, stdout], [0, "cuCtxPushCurrent_v2\ndone\n"], stderr);
});

test(
  "completed() rejects with the driver's code if the wait is refused, fails, or can never end",
  patiently,
  async () => {
    {
      const { stream, simulated } = setUp();
      simulated.failNth("cuLaunchHostFunc", 1, CUDA_ERROR_NOT_PERMITTED);
      await assertRejects(() => stream.completed(), CudaError, "cuLaunchHostFunc failed with CUDA_ERROR_NOT_PERMITTED");
    }
    for (const isCalled of [true, false]) {
      const { stream, cuda } = setUp();
      let hasFailed = false;
      intercept(cuda.driver, "stream", ({ cuStreamQuery, cuLaunchHostFunc }) => ({
        // A failing context may call its host functions first, or never.
        cuLaunchHostFunc: (...args) => (hasFailed = true, isCalled ? cuLaunchHostFunc(...args) : 0),
        cuStreamQuery: (handle) => hasFailed ? CUDA_ERROR_ILLEGAL_ADDRESS : cuStreamQuery(handle),
      }));
      await assertRejects(() => stream.completed(), CudaError, "CUDA_ERROR_ILLEGAL_ADDRESS");
    }
  },
);

// A stream that had been waited for in another way had already closed its end; a check of a failed stream closed that
// descriptor number again, which by then belonged to a file of the program.
test(
  "a wait that a failure ends closes no file of the program, whatever was closed before",
  patiently,
  async () => {
    const { stream, cuda } = setUp();
    let hasFailed = false;
    intercept(cuda.driver, "stream", ({ cuStreamQuery }) => ({
      cuStreamQuery: (handle) => hasFailed ? CUDA_ERROR_ILLEGAL_ADDRESS : cuStreamQuery(handle),
    }));
    const pending = stream.completed();
    stream.synchronize(); // the host function has run
    hasFailed = true;
    const files = Array.from({ length: 8 }, () => openSync("/proc/self/status", "r"));
    // Keeps the event loop from noticing until a check of the stream is due.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250);
    await assertRejects(() => pending, CudaError, "CUDA_ERROR_ILLEGAL_ADDRESS");
    for (const file of files) {
      fstatSync(file); // throws EBADF
      closeSync(file);
    }
  },
);

test("a failure is an error, not an answer", () => {
  const { stream, simulated } = setUp();
  const event = stream.record();
  simulated.failNth("cuStreamQuery", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  assertThrows(() => stream.isDone, CudaError, "cuStreamQuery failed with CUDA_ERROR_ILLEGAL_ADDRESS");
  simulated.failNth("cuEventQuery", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  assertThrows(() => event.isDone, CudaError, "cuEventQuery failed with CUDA_ERROR_ILLEGAL_ADDRESS");
  simulated.failNth("cuEventQuery", 1, CUDA_ERROR_NOT_READY);
  assertEquals(event.isDone, false);
});

test("a stream does not wait for itself, and does not confuse the default streams of two devices", () => {
  const { cuda, simulated, stream } = setUp();
  const waits = () => simulated.calls("cuStreamWaitEvent");
  stream.wait(stream);
  stream.wait(CudaStream.fromHandle(stream.device, stream.handle));
  assertEquals(waits(), 0);
  cuda.device(0).defaultStream.wait(cuda.device(1).defaultStream);
  assertEquals(waits(), 1);
  // Their handles are the same numbers: the driver is asked, and knows neither.
  const [one, next] = [1n << 60n, (1n << 60n) + 1n].map((handle) => CudaStream.fromHandle(stream.device, handle));
  assert(one !== undefined && next !== undefined);
  assertThrows(() => one.wait(next), CudaError);
});

test("a driver that wants a current context for every call gets one, and default streams get their device's", () => {
  for (const wants of [false, true]) {
    const { cuda, stream } = setUp();
    const { driver } = cuda;
    using arena = new NativeArena();
    const current = arena.out("ptr");
    let contexts: bigint[] = [];
    const calls: string[] = [];
    /** A function that first records its context, and optionally refuses to be called without one. */
    const noting =
      <Parameters extends unknown[]>(call: string, own: (...all: Parameters) => number) => (...all: Parameters) => {
        driver.context.cuCtxGetCurrent(current.$address);
        if (wants && current.value === 0n) return CUDA_ERROR_INVALID_CONTEXT;
        calls.push(call);
        contexts.push(current.value);
        return own(...all);
      };
    intercept(driver, "stream", ({ cuStreamQuery, cuStreamWaitEvent }) => ({
      cuStreamQuery: noting("query", cuStreamQuery),
      cuStreamWaitEvent: noting("wait", cuStreamWaitEvent),
    }));
    intercept(driver, "event", ({ cuEventRecord }) => ({ cuEventRecord: noting("record", cuEventRecord) }));
    intercept(driver, "pool", ({ cuMemAllocFromPoolAsync, cuMemFreeAsync }) => ({
      cuMemAllocFromPoolAsync: noting("allocate", cuMemAllocFromPoolAsync),
      cuMemFreeAsync: noting("free", cuMemFreeAsync),
    }));
    intercept(driver, "kernel", ({ cuLaunchKernel }) => ({ cuLaunchKernel: noting("launch", cuLaunchKernel) }));
    const streams = [stream, ...cuda.devices.map(({ defaultStream }) => defaultStream)];
    for (const one of streams) {
      const { device } = one;
      const kernel = device.loadPtx(addPtx).kernel("add");
      using event = device.createEvent();
      const memory = new DeviceMemoryResource(device);
      // The previously current context must not matter, unless the stream itself identifies its context.
      for (const elsewhere of [null, ...cuda.devices]) {
        const work = () => {
          assertEquals(one.isDone, true);
          one.record(event);
          one.wait(event);
          using buffer = memory.allocate(4, { stream: one });
          kernel.launch(one, 1, 1, [buffer, ["uint32", 1], ["uint32", 1]]);
        };
        contexts = [];
        calls.length = 0;
        if (elsewhere === null) work();
        else elsewhere.withContext(work);
        assertEquals(calls, ["query", "record", "wait", "allocate", "launch", "free"]);
        const named = wants && elsewhere === null ? device.context : elsewhere?.context ?? 0n;
        const expected = one === stream ? named : device.context;
        assertEquals(contexts, calls.map(() => expected));
        device.synchronize();
      }
    }
    cuda.close();
  }
});

test("streams and events are destroyed once: our own when they are not retained, those of others never", () => {
  const { cuda, simulated, device, stream, other } = setUp();
  const { live } = simulated;
  assertEquals([live.streams, live.events], [2, 0]);
  const event = device.createEvent();
  event.close();
  event.close();
  assertEquals(simulated.calls("cuEventDestroy_v2"), 1);
  const { handle } = stream;
  assert(stream.orSuccessor === stream);
  stream.retain();
  stream.close();
  stream.close();
  assertThrows(() => stream.retain(), TypeError, "Cannot retain a closed CudaStream");
  assertThrows(() => stream.handle, TypeError, "Cannot use a closed CudaStream");
  const { orSuccessor } = stream;
  assert(orSuccessor !== stream && orSuccessor === stream.orSuccessor && orSuccessor === orSuccessor.orSuccessor);
  orSuccessor.close(); // the caller does not own it
  assertEquals([simulated.live.streams, orSuccessor.handle, orSuccessor.isClosed, stream.isClosed], [
    2,
    handle,
    false,
    true,
  ]);
  const end = orSuccessor.record();
  other.wait(end);
  end.close();
  assertThrows(() => other.wait(stream), TypeError, "Cannot wait for a closed CudaStream");
  stream.release();
  assertEquals([simulated.live.streams, orSuccessor.isClosed], [1, true]);
  for (const gone of [stream, orSuccessor, stream.orSuccessor]) {
    assertThrows(() => gone.handle, TypeError, "Cannot use a closed CudaStream");
  }
  const borrowed = CudaStream.fromHandle(device, other.handle, "its owner");
  assertEquals(borrowed.owner, "its owner");
  borrowed.close();
  assertEquals(simulated.live.streams, 1);
  cuda.device(1).defaultStream.retain();
  other.close();
  cuda.close();
  assertEquals([simulated.live.streams, simulated.live.events], [0, 0]);
});

test("the stream of another library is one object until another one is named, and its handle may be reused", () => {
  const cuda = Cuda.simulate({ check: { leaks: false, onReport: () => {} } });
  const device = cuda.device(0);
  const [made, other] = [device.createStream(), device.createStream()];
  const { handle } = made;
  const known = device.foreignStream(handle);
  assertEquals([known.handle, known.device === device], [handle, true]);
  assert(device.foreignStream(handle) === known);
  assertEquals(device.knownStream(other.handle), null);
  made.close();
  device.foreignStream(handle); // the handle of the destroyed stream
  cuda.driver.stream.cuStreamQuery(handle);
  assertEquals(cuda.reports, []);
  assertEquals(device.foreignStream(other.handle).handle, other.handle);
  const last = device.foreignStream(other.handle);
  last.close();
  assert(device.foreignStream(other.handle) !== last, "a closed stream is not returned again");
  other.close();
  cuda.close();
});

test("a default stream that is retained retains its context, until it is released", () => {
  const { cuda, simulated } = setUp();
  const { defaultStream } = cuda.device(1);
  defaultStream.retain();
  assert(cuda.device(1).context !== 0n);
  cuda.close();
  const before = simulated.live.contexts;
  assertEquals(defaultStream.isDone, true);
  defaultStream.release();
  assertEquals(simulated.live.contexts, before - 1);
});
