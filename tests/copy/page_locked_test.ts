/** However the host reads page-locked memory, that first holds what its home stream's next work would see. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, type CudaStream, PinnedMemoryResource, StridedMemoryView } from "../../mod.ts";
import { freeAfter } from "../../src/order/deferred_free.ts";
import { reclaim } from "../../src/order/reclaim.ts";
import { laneKinds, Order } from "../support/stream_lanes.ts";
import { check, fc } from "../support/property.ts";

type Step =
  | { readonly do: "write" | "synchronize"; readonly lane: number }
  | { readonly do: "wait"; readonly lane: number; readonly before: number };

const lane = fc.nat(laneKinds.length - 1);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("write" as const), lane }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("synchronize" as const), lane }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), lane, before: lane }) },
  ),
  { minLength: 1, maxLength: 12 },
);

/** Ways to read bytes in the order of their home stream. */
const ways: Readonly<Record<string, (view: StridedMemoryView, home: CudaStream) => number[] | Promise<number[]>>> = {
  "once the stream is ready"({ buffer }, home) {
    home.waitUntilReady();
    return [...buffer.bytes()];
  },
  async "once that is promised"({ buffer }, home) {
    await home.ready();
    return [...buffer.bytes()];
  },
  "by a copy"(view) {
    const seen = new Uint8Array(view.nbytes);
    view.copyTo(seen);
    return [...seen];
  },
  "as a typed array": async (view) => Array.from(await view.toTypedArray(), Number),
  "in print": (view) => [...`${view}`.matchAll(/\d+/g)].map(Number),
  "by DLPack"(view) {
    using taken = StridedMemoryView.fromDlpack(view.toDlpack({ dlDevice: [1, 0] }));
    return [...taken.buffer.bytes()];
  },
  "when it may be freed"({ buffer }, home) {
    const seen: number[] = [];
    freeAfter(home, () => seen.push(...buffer.bytes()));
    while (seen.length === 0) reclaim();
    return seen;
  },
};

for (const [name, read] of Object.entries(ways)) {
  test(`page-locked memory is read ${name} after all that its home, or a default stream, waits for`, async () => {
    await check(
      fc.asyncProperty(
        steps,
        lane,
        fc.constantFrom("latest", "random"),
        fc.nat(),
        async (program, at, schedule, seed) => {
          using cuda = Cuda.simulate({ schedule, seed });
          const device = cuda.device(0);
          const streams = laneKinds.map((kind) => {
            if (kind === "legacy") return device.defaultStream;
            return kind === "thread" ? device.perThreadStream : device.createStream({ nonBlocking: kind === "free" });
          });
          const home = streams[at];
          assert(home !== undefined);
          using buffer = new PinnedMemoryResource(device).allocate(program.length, { stream: home });
          buffer.bytes().fill(0);
          const order = new Order(laneKinds.length);
          const writes: { readonly byte: number; readonly lane: number; readonly number: number }[] = [];
          program.forEach((step, byte) => {
            const stream = streams[step.lane];
            assert(stream !== undefined);
            if (step.do === "synchronize") {
              stream.synchronize();
              order.synchronize(step.lane);
            } else if (step.do === "wait") {
              const before = streams[step.before];
              if (before === undefined || before === stream) return;
              stream.wait(before);
              order.wait(step.lane, step.before, "new event");
            } else {
              const { fill } = cuda.driver;
              const write = () => fill.cuMemsetD8Async(buffer.ptr + BigInt(byte), 1, 1n, stream.handle);
              assertEquals(device.withContext(write), 0);
              writes.push({ byte, lane: step.lane, number: order.work(step.lane) });
            }
          });
          const due = order.upcoming(at);
          const view = StridedMemoryView.fromBuffer(buffer, { shape: [program.length], dtype: "uint8" });
          const seen = await read(view, home);
          const missing = writes.filter(({ byte, lane, number }) => number <= (due[lane] ?? 0) && seen[byte] !== 1);
          assertEquals(missing, []);
          device.synchronize();
        },
      ),
      100,
    );
  });
}
