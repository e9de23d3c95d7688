/**
 * Captures on their own: our record of which streams take part matches the driver's, whatever is recorded, waited for
 * and captured, with several Cudas at a time; and what is closed meanwhile neither invalidates a capture nor is leaked.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import type { StreamCapture } from "../../../src/public/cuda.ts";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import { Cuda, CudaError, type CudaEvent, type CudaStream, DeviceMemoryResource } from "../../../mod.ts";
import { captureOf } from "../../../src/device/graph/active_captures.ts";
import type { CudaDriver } from "../../../src/driver/driver.ts";
import { ffiPort } from "../../../src/ffi/port.ts";
import { intercept } from "../../support/intercept.ts";
import { check, fc } from "../../support/property.ts";

/** A Cuda, one of its streams and one of its events: few enough to collide. */
const place = { cuda: fc.nat(1), stream: fc.nat(2), event: fc.nat(1) };
const steps = fc.array(
  fc.record({
    what: fc.constantFrom(
      ...["begin", "record", "record", "record", "wait", "wait", "wait for a stream", "fill", "new event", "end"],
    ),
    ...place,
  }),
  { minLength: 1, maxLength: 40, size: "max" },
);

/** Makes a driver give a new event the handle of the one destroyed last, as libcuda may. The simulator never does. */
function reuseEventHandles(driver: CudaDriver): void {
  const real = new Map<bigint, bigint>();
  const free: bigint[] = [];
  const own = (event: bigint | number) => real.get(BigInt(event)) ?? BigInt(event);
  intercept(driver, "event", ({ cuEventCreate, cuEventDestroy_v2, cuEventRecord }) => ({
    cuEventCreate(out, flags) {
      const code = cuEventCreate(out, flags);
      const handle = free.pop();
      if (code !== 0 || handle === undefined) return code;
      const word = new DataView(ffiPort().memory(out, 8));
      real.set(handle, word.getBigUint64(0, true));
      word.setBigUint64(0, handle, true);
      return code;
    },
    cuEventDestroy_v2(event) {
      const code = cuEventDestroy_v2(own(event));
      if (code === 0) free.push(event);
      return code;
    },
    cuEventRecord: (event, stream) => cuEventRecord(own(event), stream),
  }));
  intercept(driver, "stream", ({ cuStreamWaitEvent }) => ({
    cuStreamWaitEvent: (stream, event, flags) => cuStreamWaitEvent(stream, own(event), flags),
  }));
}

test("the streams of a capture are those that the driver names, with several Cudas of the same handles", () => {
  check(
    fc.property(steps, (program) => {
      // Created in the same way, they have the same handles.
      const cudas = [0, 1].map(() => {
        const cuda = Cuda.simulate({ seed: 1 });
        reuseEventHandles(cuda.driver);
        const device = cuda.device(0);
        const streams = [0, 1, 2].map(() => device.createStream());
        const events = [0, 1].map(() => device.createEvent());
        const buffer = device.memory.allocate(16, { stream: streams[0] ?? device.defaultStream });
        let capture: StreamCapture | null = null;
        return { cuda, streams, events, buffer, capture: () => capture, set: (to: typeof capture) => (capture = to) };
      });
      const [first, second] = cudas.map(({ streams }) => streams.map(({ handle }) => handle));
      assertEquals(first, second);
      const pick = <T>(list: readonly T[], i: number): T => list[i % list.length] as T; // none of them is empty
      for (const step of program) {
        const one = pick(cudas, step.cuda);
        const stream: CudaStream = pick(one.streams, step.stream);
        const event: CudaEvent = pick(one.events, step.event);
        try {
          if (step.what === "begin" && one.capture() === null) one.set(stream.beginCapture());
          else if (step.what === "end") {
            const capture = one.capture();
            one.set(null);
            capture?.end().close();
          } else if (step.what === "record") stream.record(event);
          else if (step.what === "new event") {
            const { handle } = event;
            event.close();
            one.events[step.event] = stream.device.createEvent();
            assertEquals(one.events[step.event]?.handle, handle);
          } else if (step.what === "wait") stream.wait(event);
          else if (step.what === "wait for a stream") stream.wait(pick(one.streams, step.event));
          else if (step.what === "fill") one.buffer.fill(1, { stream });
        } catch (error) {
          if (!(error instanceof CudaError)) throw error; // calls that a capture forbids invalidate it, as they should
        }
        for (const { streams } of cudas) {
          const ours = streams.map((stream) => captureOf(stream) !== null);
          assertEquals(ours, streams.map((stream) => stream.isCapturing), `after ${step.what}`);
        }
      }
      for (const { cuda, capture, streams, events, buffer } of cudas) {
        capture()?.close();
        for (const one of [...events, buffer, ...streams]) one.close();
        cuda.close();
        const { live } = SimulatedDriver.of(cuda.driver) ?? {};
        assertEquals([live?.graphs, live?.streams, live?.events, live?.allocations], [0, 0, 0, 0]);
      }
    }),
    500,
  );
});

test("a capture of one Cuda does not affect another one with the same handles", () => {
  using one = Cuda.simulate({ seed: 1 });
  using other = Cuda.simulate({ seed: 1 });
  const [here, there] = [one, other].map((cuda) => cuda.device(0).createStream());
  assert(here !== undefined && there !== undefined);
  assertEquals(here.handle, there.handle);
  const capture = here.beginCapture();
  const buffer = there.device.memory.allocate(64, { stream: there }); // was refused
  buffer.fill(1, { stream: there });
  buffer.close(); // the other one's graph kept it
  there.synchronize();
  assertEquals(SimulatedDriver.of(other.driver)?.live.allocations, 0);
  capture.end().close();
  for (const stream of [here, there]) stream.close();
});

/** What can be closed during a capture: each created before, and unused. */
const closable = ["graph", "executable", "pool", "buffer", "used pool", "event", "stream", "program"] as const;

test("whatever is closed while a stream is captured, the graph is what was captured, and nothing is left behind", () => {
  check(
    fc.property(
      fc.shuffledSubarray([...closable]),
      fc.shuffledSubarray([...closable]),
      fc.constantFrom("global" as const, "thread-local" as const, "relaxed" as const),
      (during, after, mode) => {
        const cuda = Cuda.simulate();
        const device = cuda.device(0);
        const stream = device.createStream();
        const other = device.createStream();
        const buffer = device.memory.allocate(16, { stream });
        const graph = other.capture(() => buffer.fill(1, { stream: other }));
        const pool = new DeviceMemoryResource(device, {});
        const used = new DeviceMemoryResource(device, {});
        const held = used.allocate(64, { stream: other });
        const made: Readonly<Record<(typeof closable)[number], () => void>> = {
          graph: () => graph.close(),
          executable: ((exec) => () => exec.close())(graph.instantiate()),
          pool: () => pool.close(),
          buffer: () => held.close(),
          "used pool": () => used.close(),
          event: ((event) => () => event.close())(other.record()),
          stream: () => other.close(),
          program: ((program) => () => program.close())(
            device.loadPtx(".version 8.0\n.target sm_90\n.address_size 64\n"),
          ),
        };
        const captured = stream.capture(() => {
          for (const what of during) made[what]();
          buffer.fill(2, { stream });
        }, { mode });
        assertEquals(captured.nodes.map(({ kind }) => kind), ["MEMSET"], during.join(", "));
        for (const what of after) made[what]();
        for (const what of closable) made[what](); // closing twice is harmless
        captured.close();
        device.synchronize();
        for (const one of [buffer, stream]) one.close();
        cuda.close();
        const { live } = SimulatedDriver.of(cuda.driver) ?? {};
        assertEquals(
          [live?.graphs, live?.streams, live?.events, live?.pools, live?.allocations, live?.contexts],
          [0, 0, 0, 0, 0, 0],
          during.join(", "),
        );
      },
    ),
    200,
  );
});
