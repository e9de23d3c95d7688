/** Memory that the driver frees immediately is freed once its stream has passed it, and the host waits for nothing. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { Cuda, CudaError, type CudaStream, HostMemoryResource, PinnedMemoryResource } from "../../mod.ts";
import { drainFrees, freeAfter, freeAfterAll } from "../../src/order/deferred_free.ts";
import { alsoPoll } from "../../src/order/exports.ts";
import { liveExports, reclaim } from "../../src/order/reclaim.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { check, fc } from "../support/property.ts";
import { simulatorOf } from "../support/simulator_of.ts";

const waiting = ["cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"] as const;

function setUp(devices = 1) {
  const cuda = Cuda.simulate({ devices, schedule: "latest", freesWait: false });
  const simulated = simulatorOf(cuda);
  const flags = new PinnedMemoryResource(cuda.device(0)).allocate(64);
  flags.bytes().fill(0);
  const waits = () => waiting.reduce((sum, call) => sum + simulated.calls(call), 0);
  return { cuda, simulated, flags: flags.bytes(), flagsAt: flags.ptr, closeFlags: () => flags.close(), waits };
}

/** Enqueues work that sets a byte. */
function enqueue(stream: CudaStream, at: bigint): void {
  const { driver } = stream.device;
  assertEquals(stream.device.withContext(() => driver.fill.cuMemsetD8Async(at, 1, 1n, stream.handle)), 0);
}

test("a free comes after its stream's work, once, by itself, whatever is closed meanwhile, and leaves no event", () => {
  const steps = fc.array(fc.tuple(fc.constantFrom("free", "free", "look", "synchronize", "none"), fc.nat(2)), {
    minLength: 1,
    maxLength: 40,
  });
  check(
    fc.property(steps, fc.boolean(), (program, isClosedEarly) => {
      const { cuda, simulated, flags, flagsAt, waits } = setUp(2);
      const streams = [cuda.device(0).createStream(), cuda.device(1).createStream(), cuda.device(1).defaultStream];
      const frees: number[] = [];
      let [made, own] = [0, 0];
      for (const [what, at] of program) {
        const stream = streams[at];
        assert(stream !== undefined);
        if (what === "look") reclaim();
        else if (what === "synchronize") {
          stream.synchronize();
          own++;
        } else if (what === "none") freeAfter(null, () => frees.push(-1));
        else {
          const id = made++;
          enqueue(stream, flagsAt + BigInt(id));
          freeAfter(stream, () => {
            assertEquals(flags[id], 1, "freed before the stream had passed it");
            frees.push(id);
          });
        }
      }
      assertEquals(frees.filter((id) => id === -1).length, program.filter(([what]) => what === "none").length);
      for (const stream of streams) stream.close();
      if (isClosedEarly) cuda.close();
      const left = () => frees.filter((id) => id >= 0).length < made || simulated.live.events > 0;
      for (let i = 0; i < 1000 && left(); i++) reclaim(); // the device's pace is random
      assertEquals(frees.filter((id) => id >= 0).sort((a, b) => a - b), Array.from({ length: made }, (_, id) => id));
      assertEquals([simulated.live.events, waits()], [0, own]);
      cuda.close();
    }),
    300,
  );
});

test("memory whose work is done is freed at once, other memory stays, and polling does not free it early", () => {
  const { cuda, simulated, flagsAt } = setUp();
  const stream = cuda.device(0).createStream();
  let frees = 0;
  freeAfter(stream, () => frees++);
  assertEquals([frees, simulated.live.events], [1, 0]);
  enqueue(stream, flagsAt);
  freeAfter(stream, () => frees++);
  assertEquals([frees, simulated.live.events], [1, 1]);
  simulated.failNth("cuEventQuery", 1, CUresult.CUDA_ERROR_NOT_READY);
  reclaim();
  assertEquals(frees, 1);
  drainFrees();
  assertEquals([frees, simulated.live.events], [2, 0]);
});

test("draining waits for the remaining work, and frees everything", () => {
  const { cuda, flags, flagsAt } = setUp();
  const streams = [cuda.device(0).createStream(), cuda.device(0).createStream()];
  const seen: (number | undefined)[] = [];
  streams.forEach((stream, i) => {
    enqueue(stream, flagsAt + BigInt(i));
    freeAfter(stream, () => seen.push(flags[i]));
  });
  assertEquals(seen, []);
  drainFrees();
  assertEquals(seen, [1, 1]);
});

for (const order of ["first", "last"]) {
  test(
    `when the Cuda was closed ${order}, all is freed once its work is done, without further allocations`,
    patiently,
    async () => {
      const script = new URL("./closed_child.ts", import.meta.url);
      assertEquals(await runScriptForJson(script, { args: [order] }), { before: [1, 1], after: [0, 0, 0, 0] });
    },
  );
}

test("every allocation of every resource polls first", () => {
  const { cuda, flagsAt } = setUp();
  const device = cuda.device(0);
  const stream = device.createStream();
  const resources = [new HostMemoryResource(), new PinnedMemoryResource(device), device.memory];
  for (const resource of resources) {
    let frees = 0;
    enqueue(stream, flagsAt);
    freeAfter(stream, () => frees++);
    assertEquals(frees, 0);
    for (let i = 0; i < 10; i++) resource.allocate(8, { stream: device.defaultStream }).close();
    assertEquals(frees, 1, resource.constructor.name);
  }
  let polls = 0;
  alsoPoll(() => polls++);
  liveExports();
  assertEquals(polls, 1);
});

test("a context that has failed runs nothing more: memory that waits for it is freed, and delays no other free", () => {
  const { cuda, simulated, flagsAt, closeFlags } = setUp(2);
  const [stream, other] = [cuda.device(0).createStream(), cuda.device(1).createStream()];
  const freed: string[] = [];
  enqueue(stream, flagsAt);
  freeAfter(stream, () => {
    freed.push("one");
    throw new EvalError("the free of the first");
  });
  freeAfter(stream, () => freed.push("two"));
  enqueue(other, flagsAt + 1n);
  freeAfter(other, () => freed.push("three"));
  simulated.failNth("cuEventQuery", 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  simulated.failNth("cuEventQuery", 2, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  simulated.failNth("cuEventQuery", 3, CUresult.CUDA_ERROR_NOT_READY);
  assertThrows(() => reclaim(), EvalError, "the free of the first");
  assertEquals(freed, ["one", "two"]);
  drainFrees();
  assertEquals([freed.length, simulated.live.events], [3, 0]);
  simulated.failNth("cuStreamQuery", 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  freeAfter(stream, () => freed.push("four"));
  assertEquals(freed.at(-1), "four");
  simulated.failNth("cuEventRecord", 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  simulated.failNth("cuStreamSynchronize", 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
  freeAfter(cuda.device(0).defaultStream, () => freed.push("five")); // it is not queried
  assertEquals(freed.at(-1), "five");
  for (const one of [stream, other]) one.close();
  closeFlags();
  cuda.close();
  drainFrees(); // the flags have no home stream
  assertEquals(simulated.live.contexts, 0);
});

test("where the driver cannot create an event, freeing waits, because it must", () => {
  for (const call of ["cuEventCreate", "cuEventRecord"]) {
    const { cuda, simulated, flags, flagsAt } = setUp();
    const stream = cuda.device(0).createStream();
    enqueue(stream, flagsAt);
    simulated.failNth(call, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    const seen: (number | undefined)[] = [];
    freeAfter(stream, () => seen.push(flags[0]));
    assertEquals([seen, simulated.live.events], [[1], 0], call);
  }
});

test("where no event can be created, a free also waits for all that the stream's next work would come after", () => {
  const kinds = ["non-blocking", "blocking", "default", "per-thread"] as const;
  check(
    fc.property(
      fc.constantFrom(...kinds),
      fc.constantFrom(...kinds),
      fc.constantFrom("cuEventCreate", "cuEventRecord"),
      (of, busy, call) => {
        const { cuda, simulated, flags, flagsAt } = setUp();
        const device = cuda.device(0);
        const streams = {
          "non-blocking": device.createStream(),
          blocking: device.createStream({ nonBlocking: false }),
          default: device.defaultStream,
          "per-thread": device.perThreadStream,
        };
        enqueue(streams[busy], flagsAt);
        simulated.failNth(call, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
        const seen: (number | undefined)[] = [];
        freeAfter(streams[of], () => seen.push(flags[0]));
        const isOrdered = of === busy ||
          [of, busy].every((one) => one !== "non-blocking") && [of, busy].includes("default");
        assertEquals(seen.length, 1);
        if (isOrdered) assertEquals(seen, [1], `a free in the order of the ${of} stream, behind the ${busy} one`);
        drainFrees();
        for (const one of ["non-blocking", "blocking"] as const) streams[one].close();
        cuda.close();
      },
    ),
    60,
  );
});

test("a free that waits for all work of several devices comes after each one's, with or without events", () => {
  check(
    fc.property(
      fc.array(fc.nat(2), { maxLength: 5 }),
      fc.uniqueArray(fc.nat(2), { maxLength: 3 }),
      fc.array(fc.constantFrom("cuEventCreate", "cuCtxRecordEvent"), { maxLength: 2 }),
      fc.boolean(),
      (works, awaited, failing, isRefused) => {
        const { cuda, simulated, flags, flagsAt } = setUp(3);
        const streams = works.map((at) => cuda.device(at).createStream());
        streams.forEach((stream, i) => enqueue(stream, flagsAt + BigInt(i)));
        for (const call of failing) simulated.failNth(call, 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
        // As if by a capture of another library that cannot be seen.
        if (isRefused) simulated.failNth("cuCtxSynchronize", 1, CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        let frees = 0;
        freeAfterAll(awaited.map((at) => cuda.device(at)), () => {
          frees++;
          works.forEach((at, i) => awaited.includes(at) && assertEquals(flags[i], 1, `the work of device ${at}`));
        });
        drainFrees();
        assertEquals([frees, simulated.live.events], [1, 0]);
        for (const stream of streams) stream.close();
        cuda.close();
      },
    ),
    150,
  );
});

test("during a capture that cannot be seen and refuses an event, the host does not wait, as it may not", () => {
  const { cuda, simulated, flagsAt, waits } = setUp();
  const stream = cuda.device(0).createStream();
  enqueue(stream, flagsAt);
  simulated.failNth("cuCtxRecordEvent", 1, CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  let frees = 0;
  freeAfterAll([cuda.device(0)], () => frees++);
  assertEquals([frees, waits()], [0, 0]);
  drainFrees();
  assertEquals(frees, 1);
});

test("polling invalidates no capture: pending frees wait until the capture has ended", () => {
  const { cuda, simulated, flagsAt } = setUp();
  const [stream, captured] = [cuda.device(0).createStream(), cuda.device(0).createStream()];
  let frees = 0;
  enqueue(stream, flagsAt);
  freeAfter(stream, () => frees++);
  using graph = captured.capture(() => {
    for (let i = 0; i < 10; i++) reclaim();
    freeAfter(null, () => {});
    assertEquals(frees, 0);
  });
  assertEquals(graph.nodes, []);
  for (let i = 0; i < 10; i++) reclaim();
  assertEquals([frees, simulated.live.events], [1, 0]);
});

test("a usage error is not mistaken for a context that has failed", () => {
  const { cuda, flagsAt } = setUp();
  const stream = cuda.device(0).createStream();
  stream.close();
  assertThrows(() => freeAfter(stream, () => {}), TypeError, "Cannot synchronize a closed CudaStream");
  assert(flagsAt !== 0n && CudaError.name === "CudaError");
});

test("a free that waits for several devices waits for the remaining ones when their Cuda is closed meanwhile", () => {
  const { cuda, closeFlags, flagsAt } = setUp(2);
  const [device, other] = [cuda.device(0), cuda.device(1)];
  const stream = device.createStream();
  enqueue(stream, flagsAt);
  let frees = 0;
  freeAfterAll([device, other], () => frees++);
  assertEquals(frees, 0);
  stream.close();
  closeFlags();
  cuda.close();
  assertEquals([device.isGone, other.isGone], [false, true]);
  drainFrees();
  assertEquals(frees, 1);
});
