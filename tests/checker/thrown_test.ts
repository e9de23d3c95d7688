/** The error that the checker throws is the one that its user sees, whatever is found while `using` blocks exit. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CausalityError, type CausalityReport } from "../../src/checker/mod.ts";
import { Cuda, CudaError, DeviceMemoryResource, MemoryBuffer, PinnedMemoryResource } from "../../mod.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import { check, fc } from "../support/property.ts";

/** Runs something and returns what it wrote to the console. */
function printedBy(run: () => void): string[] {
  const said: string[] = [];
  const { error } = console;
  console.error = (...words: readonly unknown[]) => void said.push(words.map(String).join(" "));
  try {
    run();
  } finally {
    console.error = error;
  }
  return said;
}

const steps = fc.array(
  fc.record({
    do: fc.constantFrom("fill", "fill", "copy", "wait"),
    lane: fc.nat(2),
    other: fc.nat(2),
    buffer: fc.nat(2),
  }),
  { maxLength: 12 },
);

type Steps = typeof steps extends fc.Arbitrary<infer T> ? T : never;

/** Streams and buffers that a block closes, and work on them with occasional waits. */
function perform(program: Steps, onReport?: (report: CausalityReport) => void): void {
  using cuda = Cuda.simulate({ schedule: "latest", check: onReport === undefined ? true : { onReport } });
  const device = cuda.device(0);
  using one = device.createStream();
  using other = device.createStream();
  using third = device.createStream({ nonBlocking: false });
  const streams = [one, other, third];
  const at = (lane: number) => streams[lane] ?? one;
  const resource = new DeviceMemoryResource(device);
  using a = resource.allocate(64, { stream: one });
  using b = resource.allocate(64, { stream: other });
  using c = resource.allocate(64, { stream: third });
  const buffers = [a, b, c];
  for (const { do: what, lane, other: second, buffer } of program) {
    const bytes = buffers[buffer] ?? a;
    if (what === "fill") bytes.fill(1, { stream: at(lane) });
    else if (what === "copy" && second !== buffer) bytes.copyFrom(buffers[second] ?? b, { stream: at(lane) });
    else if (what === "wait" && second !== lane) at(lane).wait(at(second));
  }
}

/** The content of a report without its call sites. */
function essence(report: CausalityReport | undefined): unknown {
  if (report === undefined) return null;
  const { kind, first, second, bytes } = report;
  return [kind, first?.call, first?.stream, second?.call, second?.stream, bytes];
}

test("the first report is thrown, though closing the remaining objects finds more", () => {
  let further = 0;
  check(
    fc.property(steps, (program) => {
      const found: CausalityReport[] = [];
      perform(program, (report) => found.push(report));
      if (found.length > 1) further++;
      let thrown: CausalityError | undefined;
      const said = printedBy(() => {
        try {
          perform(program);
        } catch (error) {
          if (!(error instanceof CausalityError)) throw error;
          thrown = error;
        }
      });
      assertEquals(said.length, thrown === undefined ? 0 : 1); // the report was unread when the Cuda was closed
      assertEquals(essence(thrown?.report), essence(found[0]));
      if (thrown !== undefined) assert(said[0]?.includes(thrown.message));
    }),
    150,
  );
  assert(further > 0, "no program had more than one report: this shows nothing");
});

test("an error that another one hides is printed when the Cuda is closed, unless its report was read", () => {
  for (const isLookedAt of [false, true]) {
    const said = printedBy(() => {
      using cuda = Cuda.simulate({ check: { leaks: false } });
      const device = cuda.device(0);
      const [one, other] = [device.createStream(), device.createStream()];
      const buffer = new DeviceMemoryResource(device).allocate(64, { stream: one });
      let hidden: unknown;
      assertThrows(() => {
        using _bad = {
          [Symbol.dispose]() {
            throw new RangeError("of another's disposal");
          },
        };
        try {
          buffer.fill(1, { stream: other });
        } catch (error) {
          hidden = error;
          throw error;
        }
      });
      assert(hidden instanceof CausalityError);
      if (isLookedAt) assertEquals(hidden.kind, "race");
    });
    assertEquals(said.length, isLookedAt ? 0 : 1);
    if (!isLookedAt) assert(said[0]?.includes("thrown_test.ts"), said[0]);
  }
});

const wild = `
.version 8.0
.target sm_90
.address_size 64
.visible .entry wild()
{
  .reg .b64 %rd<2>;
  mov.u64 %rd1, 64;
  st.global.u64 [%rd1], %rd1;
  ret;
}`;

test("in a lost context nothing can be freed, so that nothing is a leak", () => {
  for (const isLost of [true, false]) {
    const cuda = Cuda.simulate({ schedule: "latest", check: { onReport: () => {} } });
    const device = cuda.device(0);
    const stream = device.createStream();
    new DeviceMemoryResource(device).allocate(64, { stream });
    const closed = new DeviceMemoryResource(device).allocate(64, { stream });
    const program = device.loadPtx(wild);
    if (isLost) {
      program.kernel("wild").launch(stream, 1, 1, []);
      const error = assertThrows(() => stream.synchronize(), CudaError);
      assertEquals(error instanceof CudaError && error.code, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    closed.close();
    program.close();
    stream.close();
    cuda.close();
    assertEquals(cuda.reports.map(({ kind }) => kind), isLost ? [] : ["leak"]);
  }
});

test("the host races with nothing in a lost context, whose work is over", () => {
  for (const isLost of [true, false]) {
    const cuda = Cuda.simulate({ schedule: "latest", check: { leaks: false, onReport: () => {} } });
    const device = cuda.device(0);
    const [stream, other] = [device.createStream(), device.createStream()];
    const pinned = new PinnedMemoryResource(device).allocate(64);
    const program = device.loadPtx(wild);
    pinned.fill(1, { stream: other }); // this is not waited for
    if (isLost) {
      program.kernel("wild").launch(stream, 1, 1, []);
      assertThrows(() => stream.synchronize(), CudaError);
    }
    MemoryBuffer.fromArrayBuffer(new ArrayBuffer(64), 0, 64).copyFrom(pinned);
    cuda.close();
    assertEquals(cuda.reports.map(({ kind }) => kind), isLost ? [] : ["race"]);
  }
});
