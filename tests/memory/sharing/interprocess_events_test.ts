/** The marks of a channel: as many events as streams that are busy at a time, and none waited for too early. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../../bindings/cuda_types.ts";
import { type Schedule, SimulatedDriver } from "../../../src/public/sim.ts";
import { Cuda, type CudaEvent, DeviceMemoryResource, type MemoryBuffer, PinnedMemoryResource } from "../../../mod.ts";
import { StreamMarks } from "../../../src/memory/sharing/interprocess_events.ts";
import { intercept } from "../../support/intercept.ts";
import { check, fc } from "../../support/property.ts";
import { assertNothingLeft, ends, live, until } from "./ends.ts";

test("short-lived streams leave no events behind: there are as many as streams that were at work at a time", async () => {
  for (const atWork of [1, 3]) {
    const all = ends("latest");
    const [mine, theirs] = [all.here.device(0), all.there.device(0)];
    const pool = new DeviceMemoryResource(mine, { shareable: true });
    const busy = Array.from({ length: atWork - 1 }, () => mine.createStream());
    for (const stream of busy) {
      const buffer = pool.allocate(8, { stream });
      buffer.fill(1, { stream });
      await all.owner.send(buffer);
      buffer.close();
    }
    for (let i = 0; i < 40; i++) {
      const [stream, home] = [mine.createStream(), theirs.createStream()];
      const buffer = pool.allocate(8, { stream });
      await all.owner.send(buffer);
      buffer.close();
      stream.close();
      (await all.user.receive({ stream: home }) as MemoryBuffer).close();
      home.synchronize();
      home.close();
      await until("the release", () => all.owner.shared <= atWork - 1);
      for (const cuda of [all.here, all.there]) {
        assert(live(cuda).events <= 2 * atWork + 4, `${live(cuda).events} events after ${i + 1} streams`);
      }
    }
    for (const stream of busy) stream.close();
    for (const one of [all.user, all.owner, pool, all.here, all.there]) one.close();
  }
});

test("marks of other streams are reused behind streams that never complete", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const stuck = new Set<CudaEvent>();
  const marks = new StreamMarks(cuda.devices);
  intercept(cuda.driver, "event", ({ cuEventQuery }) => ({
    cuEventQuery: (event) => {
      const isStuck = [...stuck].some(({ handle }) => handle === event);
      return isStuck ? CUresult.CUDA_ERROR_NOT_READY : cuEventQuery(event);
    },
  }));
  const make = device.createEvent.bind(device);
  let made: CudaEvent | null = null;
  device.createEvent = (options) => made = make(options);
  for (let i = 0; i < 100; i++) {
    const stream = device.createStream();
    marks.mark(stream, []);
    if (i % 40 === 0 && made !== null) stuck.add(made);
    stream.synchronize();
    stream.close();
  }
  assert(live(cuda).events <= 10, `${live(cuda).events} events for 100 streams of which 3 are at work`);
  marks.close();
  assertEquals(live(cuda).events, 0);
});

test("a mark that may not have passed is not reused, and none is queried during a capture", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const marks = new StreamMarks(cuda.devices);
  const streams = Array.from({ length: 4 }, () => device.createStream());
  const ids = streams.slice(0, 2).map((stream) => {
    SimulatedDriver.of(cuda.driver)?.failNth("cuEventQuery", 1, CUresult.CUDA_ERROR_UNKNOWN);
    return marks.mark(stream, []);
  });
  assertEquals(ids, [0, 1]);
  const [first, second, third] = streams;
  assert(first !== undefined && second !== undefined && third !== undefined);
  using graph = first.capture(() => void ids.push(marks.mark(third, [])));
  assertEquals([ids, graph.nodes], [[0, 1, 2], []]);
  marks.close();
  for (const stream of streams) stream.close();
});

test("whatever streams share a mark, a receiver comes after its buffer's work, however late it reads", async () => {
  await check(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom("old", "new", "synchronize", "receive"), fc.nat(2)), { maxLength: 25 }),
      fc.constantFrom<Schedule>("latest", "random", "round-robin"),
      fc.nat(),
      async (steps, schedule, seed) => {
        const all = ends(schedule, seed);
        const [mine, theirs] = [all.here.device(0), all.there.device(0)];
        const pool = new DeviceMemoryResource(mine, { shareable: true });
        const streams = [mine.createStream()];
        const reader = theirs.createStream();
        const sinks: MemoryBuffer[] = [];
        let [sent, received] = [0, 0];
        const receive = async () => {
          const copy = await all.user.receive({ stream: reader }) as MemoryBuffer;
          const sink = new PinnedMemoryResource(theirs).allocate(8);
          copy.copyTo(sink, { stream: reader });
          copy.close();
          sinks.push(sink);
          received++;
        };
        for (const [what, at] of steps) {
          if (what === "receive" && received < sent) await receive();
          if (what === "new") streams.push(mine.createStream());
          const stream = streams[what === "new" ? streams.length - 1 : at % streams.length] ?? fail();
          if (what === "synchronize") stream.synchronize();
          if (what !== "new" && what !== "old") continue;
          using buffer = pool.allocate(8, { stream });
          for (const value of [0xee, sent]) buffer.fill(value, { stream });
          await all.owner.send(buffer);
          sent++;
        }
        while (received < sent) await receive();
        reader.synchronize();
        assertEquals(sinks.map((sink) => sink.bytes()[7]), sinks.map((_, i) => i));
        await until("the release", () => all.owner.shared === 0);
        for (const one of [...sinks, ...streams, reader, all.user, all.owner, pool]) one.close();
        await assertNothingLeft(all);
      },
    ),
    60,
  );
});

function fail(): never {
  throw new Error("there is no such buffer");
}
