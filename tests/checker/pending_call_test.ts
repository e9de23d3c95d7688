/** How the checker handles kernels, graphs and pitched copies. */
import { assert, assertEquals } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type CausalityReport, checkDriver, type CheckOptions } from "../../src/checker/mod.ts";
import {
  Cuda,
  type CudaDevice,
  type CudaStream,
  DeviceMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { observeKernels } from "../../src/driver/traits.ts";
import { paramsOf } from "../../src/checker/kernel_params.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { check, fc, scaled } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

const arrays = readFileSync(new URL("../data/ptx/arrays.sm_90.ptx", import.meta.url), "utf8");

/** `out[in[0]] = in[0]`: the value read determines where to write; its memory is only read. */
const scatter = `
.version 8.0
.target sm_90
.address_size 64
.visible .entry scatter(.param .u64 in, .param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.global.u32 %r1, [%rd1];
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r1;
  ret;
}`;

interface Bench {
  readonly cuda: Cuda;
  readonly device: CudaDevice;
  readonly one: CudaStream;
  readonly other: CudaStream;
}

/** What is reported about some work on two streams. */
function reportsOf(work: (bench: Bench) => void, options: CheckOptions = {}): readonly CausalityReport[] {
  const cuda = Cuda.simulate({ schedule: "latest", check: { leaks: false, ...options, onReport: () => {} } });
  const device = cuda.device(0);
  using one = device.createStream();
  using other = device.createStream();
  work({ cuda, device, one, other });
  cuda.close();
  return cuda.reports;
}

/** The two calls of each report. */
function pairs(reports: readonly CausalityReport[]): string[] {
  return reports.map(({ kind, first, second }) =>
    `${kind}: ${first?.call} ${first?.does}, ${second?.call} ${second?.does}`
  );
}

/** A saxpy on one stream, and work on another stream that does not wait for it. */
function afterKernel(
  then: (bench: Bench, x: MemoryBuffer, y: MemoryBuffer) => void,
  options: CheckOptions = {},
  count = 128,
): string[] {
  return pairs(reportsOf((bench) => {
    const { device, one, other } = bench;
    const resource = new DeviceMemoryResource(device);
    const [x, y] = [resource.allocate(512, { stream: one }), resource.allocate(512, { stream: one })];
    for (const buffer of [x, y]) buffer.fill(0, { stream: one });
    other.wait(one);
    const program = device.loadPtx(arrays);
    program.kernel("saxpy").launch(one, 1, 128, [["float32", 1], x, y, ["int32", count]]);
    then(bench, x, y);
    one.wait(other);
    program.close();
    for (const buffer of [x, y]) buffer.close();
  }, options));
}

test("PTX says which parameters a kernel only reads", () => {
  const saxpy = paramsOf(arrays).get("saxpy") ?? []; // saxpy(float a, const float *x, float *y, int n)
  assertEquals(saxpy.map(({ size, writes }) => [size, writes]), [[4, false], [8, false], [8, true], [4, false]]);
  const scattered = paramsOf(scatter).get("scatter") ?? [];
  assertEquals(scattered.map(({ writes }) => writes), [false, true]);
  assertEquals(paramsOf("this is no PTX").size, 0);
});

/** A kernel that writes through a function, and one that adds. */
const writers = `
.version 8.0
.target sm_90
.address_size 64
.func store(.param .b64 to)
{
  .reg .b64 %rd<2>;
  ld.param.b64 %rd1, [to];
  st.global.u64 [%rd1], %rd1;
  ret;
}
.visible .entry calls(.param .u64 to)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [to];
  {
    .param .b64 param0;
    st.param.b64 [param0], %rd1;
    call.uni store, (param0);
  }
  ret;
}
.visible .entry adds(.param .u64 to, .param .u64 from)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  ld.global.u32 %r1, [%rd2];
  atom.global.add.u32 %r2, [%rd1], %r1;
  ret;
}`;

test("PTX says that a kernel writes memory that it adds to, and nothing about one that calls functions", () => {
  const params = paramsOf(writers);
  assertEquals(params.get("adds")?.map(({ writes }) => writes), [true, false]);
  assertEquals(params.get("calls")?.map(({ writes }) => writes), [null]);
});

test("on a device that does not report what kernels touch, one that reads hides no earlier one that writes", () => {
  const simulated = simulateDriver({ schedule: "latest" });
  const reports: CausalityReport[] = [];
  const { [observeKernels]: _, ...driver } = simulated.driver; // like a real driver, does not report what kernels touch
  const checker = checkDriver(driver, { leaks: false, onReport: (report) => void reports.push(report) });
  const raw = new Raw(checker.driver);
  raw.use(0);
  const { memory, module, kernel, copy, context } = raw.driver;
  const [x, y, z] = ([0, 1, 2] as const).map(() => raw.word((out) => memory.cuMemAlloc_v2(out, 4n)));
  const [one, other] = [raw.stream(1), raw.stream(1)];
  assert(x !== undefined && y !== undefined && z !== undefined);
  const image = raw.arena.cString(scatter);
  const loaded = raw.word((out) => module.cuModuleLoadData(out, image));
  const scattered = raw.word((out) => module.cuModuleGetFunction(out, loaded, cString("scatter")));
  const launch = (from: bigint, to: bigint) => {
    const words = raw.arena.bytes(32);
    const view = new DataView(words.bytes.buffer, words.bytes.byteOffset, 32);
    [from, to, words.address, words.address + 8n].forEach((word, i) => view.setBigUint64(8 * i, word, true));
    raw.ok(kernel.cuLaunchKernel(scattered, 1, 1, 1, 1, 1, 1, 0, one, words.address + 16n, 0n));
  };
  raw.ok(raw.driver.fill.cuMemsetD8_v2(x, 0, 4n));
  raw.ok(context.cuCtxSynchronize());
  launch(x, y);
  launch(y, z); // reads what the first launch writes
  raw.ok(copy.cuMemcpyDtoDAsync_v2(x, y, 4n, other));
  assertEquals(pairs(reports), ["race: cuLaunchKernel writes, cuMemcpyDtoDAsync_v2 reads"]);
  raw.close();
});

test("work of a graph comes after what its predecessors come after, an updated graph after its last launch", () => {
  const reports = reportsOf(({ device, one, other }) => {
    const [a, b] = [1, 2].map(() => new DeviceMemoryResource(device).allocate(64, { stream: one }));
    assert(a !== undefined && b !== undefined);
    other.wait(one);
    const chain = (value: number) =>
      one.capture(() => {
        for (const buffer of [a, b, a]) buffer.fill(value, { stream: one });
      });
    const [graph, next] = [chain(1), chain(2)];
    const exec = graph.instantiate();
    exec.launch(one);
    exec.update(next);
    exec.launch(other); // waits for the previous launch, whatever the streams do
    one.wait(other);
    for (const each of [exec, graph, next, a, b]) each.close();
  });
  assertEquals(pairs(reports), []);
});

test("a kernel and any work that touches all of its memory are unordered without a wait", () => {
  assertEquals(afterKernel(({ other }, _x, y) => y.fill(1, { stream: other })), [
    "race: cuLaunchKernel writes, cuMemsetD8Async writes",
  ]);
  assertEquals(afterKernel(({ other }, x) => x.fill(1, { stream: other })), [
    "race: cuLaunchKernel reads, cuMemsetD8Async writes",
  ]);
  const download = ({ device, other }: Bench, buffer: MemoryBuffer) => {
    const host = new PinnedMemoryResource(device).allocate(512);
    host.copyFrom(buffer, { stream: other });
    other.synchronize();
    host.close();
  };
  assertEquals(afterKernel((bench, _x, y) => download(bench, y)), [
    "race: cuLaunchKernel writes, cuMemcpyDtoHAsync_v2 reads",
  ]);
  assertEquals(afterKernel((bench, x) => download(bench, x)), []); // both read
});

test("a kernel that shares memory piece by piece with other work is not reported, unless requested", () => {
  const half = ({ cuda, other }: Bench, _x: MemoryBuffer, y: MemoryBuffer) => {
    cuda.driver.fill.cuMemsetD8Async(y.ptr + 256n, 1, 256n, other.handle);
  };
  const race = ["race: cuLaunchKernel writes, cuMemsetD8Async writes"];
  assertEquals(afterKernel(half, {}, 64), []); // the kernel has the other half
  assertEquals(afterKernel(half), race); // what it touches is known once it has run
  assertEquals(afterKernel(half, { kernels: "whole" }, 64), race);
});

test("a kernel with freed memory as an argument is reported, and so is a free that does not wait for a kernel", () => {
  const reports = reportsOf(({ device, one, other }) => {
    const resource = new DeviceMemoryResource(device);
    const [x, y] = [resource.allocate(512, { stream: one }), resource.allocate(512, { stream: one })];
    const { ptr } = x;
    const program = device.loadPtx(arrays);
    const saxpy = program.kernel("saxpy");
    other.wait(one);
    saxpy.launch(other, 1, 0 + 128, [["float32", 1], x, y, ["int32", 128]]);
    x.close();
    saxpy.launch(other, 1, 128, [["float32", 1], ptr, y, ["int32", 128]]);
    one.wait(other);
    y.close();
  });
  assertEquals(pairs(reports), [
    "race: cuLaunchKernel reads, cuMemFreeAsync frees",
    "use-after-free: cuMemFreeAsync frees, cuLaunchKernel uses",
  ]);
});

test("branches of a graph that touch the same bytes are reported at the first launch, ordered ones are not", () => {
  for (const joined of [true, false]) {
    const reports = reportsOf(({ device, one, other }) => {
      const buffer = new DeviceMemoryResource(device).allocate(64, { stream: one });
      const graph = one.capture(() => {
        other.wait(one);
        buffer.fill(1, { stream: one });
        if (joined) other.wait(one);
        buffer.fill(2, { stream: other });
        one.wait(other);
      });
      const exec = graph.instantiate();
      exec.launch(one);
      exec.launch(one);
      exec.close();
      graph.close();
      buffer.close();
    });
    const race = "race: cuMemsetD8Async writes, cuMemsetD8Async writes";
    assertEquals(pairs(reports), joined ? [] : [race]);
  }
});

// Kernels were left out when branches were compared: what is reported of two streams was not reported of their graph.
test("branches of a graph are reported exactly if the same work on two streams is, that of kernels included", () => {
  const { [observeKernels]: _, ...driver } = simulateDriver().driver; // what kernels touch is assumed, as on a device
  const counts = { reported: 0, not: 0 };
  const uses = fc.constantFrom("reads", "writes", "calls", "fills", "copies to", "copies from");
  const kernels = fc.constantFrom("certain" as const, "whole" as const);
  check(
    fc.property(uses, uses, fc.constantFrom(64, 32), fc.boolean(), kernels, (first, second, bytes, joined, kernels) => {
      const isReported = (captured: boolean): boolean => {
        const cuda = Cuda.over(driver, { check: { leaks: false, kernels, onReport: () => {} } });
        const device = cuda.device(0);
        using one = device.createStream();
        using other = device.createStream();
        const memory = new SynchronousMemoryResource(device);
        using x = memory.allocate(64);
        using y = memory.allocate(64);
        using z = memory.allocate(64);
        using program = device.loadPtx(writers);
        const [adds, calls] = [program.kernel("adds"), program.kernel("calls")];
        const run = (use: typeof first, stream: CudaStream, spare: MemoryBuffer): void => {
          const copy = (to: bigint, from: bigint) =>
            void cuda.driver.copy.cuMemcpyDtoDAsync_v2(to, from, BigInt(bytes), stream.handle);
          if (use === "reads") adds.launch(stream, 1, 1, [spare, x]);
          else if (use === "writes") adds.launch(stream, 1, 1, [x, spare]);
          else if (use === "calls") calls.launch(stream, 1, 1, [x]);
          else if (use === "fills") cuda.driver.fill.cuMemsetD8Async(x.ptr, 0, BigInt(bytes), stream.handle);
          else if (use === "copies to") copy(x.ptr, spare.ptr);
          else copy(spare.ptr, x.ptr);
        };
        const work = () => {
          other.wait(one);
          run(first, one, y);
          if (joined) other.wait(one);
          run(second, other, z);
          one.wait(other);
        };
        for (const buffer of [x, y, z]) cuda.driver.fill.cuMemsetD8_v2(buffer.ptr, 0, 64n);
        device.synchronize();
        if (captured) {
          using graph = one.capture(work);
          using exec = graph.instantiate();
          exec.launch(one);
        } else work();
        device.synchronize();
        cuda.close();
        return cuda.reports.length > 0;
      };
      const expected = isReported(false);
      counts[expected ? "reported" : "not"]++;
      assertEquals(isReported(true), expected);
    }),
    300,
  );
  assert(Math.min(counts.reported, counts.not) > scaled(30), JSON.stringify(counts));
});

// Both sides went by the stream of the launch, and the remedy was to let it wait for itself.
test("a race between branches of a graph names the streams that they were captured on, and the wait between these", () => {
  const [report] = reportsOf(({ device, one }) => {
    using a = device.createStream({ name: "a" });
    using b = device.createStream({ name: "b" });
    using buffer = device.memory.allocate(64, { stream: one });
    a.wait(one);
    using graph = a.capture(() => {
      b.wait(a);
      buffer.fill(1, { stream: a });
      buffer.fill(2, { stream: b });
      a.wait(b);
    });
    using exec = graph.instantiate();
    exec.launch(one);
  });
  assertEquals([report?.first?.stream, report?.second?.stream], ['stream "a" of device 0', 'stream "b" of device 0']);
  const remedy =
    'In the capture, let stream "b" of device 0 wait for stream "a" of device 0 after the first: b.wait(a).';
  assertEquals(report?.message.split("\n").at(-1), remedy);
});

test("a graph touches memory when it is launched, where it is launched", () => {
  const reports = reportsOf(({ device, one, other }) => {
    const buffer = new DeviceMemoryResource(device).allocate(64, { stream: one });
    const graph = one.capture(() => buffer.fill(1, { stream: one }));
    const exec = graph.instantiate();
    buffer.fill(2, { stream: one }); // the captured fill has not run
    other.wait(one);
    exec.launch(other);
    buffer.fill(3, { stream: one }); // unordered with the launch
    one.wait(other);
    exec.close();
    graph.close();
    buffer.close();
  });
  assertEquals(pairs(reports), ["race: cuGraphLaunch writes, cuMemsetD8Async writes"]);
});

test("a report of a race draws itself and names the bytes that both touch", () => {
  let ptr = 0n;
  const [report] = reportsOf(({ cuda, device, one, other }) => {
    const buffer = new DeviceMemoryResource(device).allocate(256, { stream: one });
    other.wait(one);
    ({ ptr } = buffer);
    cuda.driver.fill.cuMemsetD8Async(ptr, 1, 96n, one.handle);
    cuda.driver.fill.cuMemsetD8Async(ptr + 64n, 2, 64n, other.handle);
    one.wait(other);
    buffer.close();
  });
  assert(report !== undefined);
  assertEquals([report.address, report.bytes], [ptr + 64n, 32]);
  assert(report.toSvg().startsWith("<svg "));
});
