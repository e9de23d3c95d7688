/**
 * Kernels, copies, fills and the host on the same bytes: on the simulator the checker reports exactly what a judge
 * finds unordered. The judge knows which bytes each step of a program touches, and uses no clocks.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { moduleCalls } from "../../src/checker/calls/kernel.ts";
import { CheckerState } from "../../src/checker/checker_state.ts";
import type { CausalityReport } from "../../src/checker/mod.ts";
import { type Schedule, SimulatedDriver, simulateDriver } from "../../src/public/sim.ts";
import {
  Cuda,
  type CudaStream,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { check, fc, scaled } from "../support/property.ts";
import { enqueueFill } from "../../src/device/mod.ts";

/**
 * Each of `n` threads: `to[i] = from[i]`; `peek` only reads, `count` adds to a counter, `poll` reads what other threads
 * may write.
 */
const kernels = `
.version 8.0
.target sm_90
.address_size 64
.visible .entry move(.param .u64 to, .param .u64 from)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %rd3, %r1;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u8 %r2, [%rd5];
  st.global.u8 [%rd4], %r2;
  ret;
}
.visible .entry peek(.param .u64 from)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [from];
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %rd2, %r1;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u8 %r2, [%rd3];
  ret;
}
.visible .entry count(.param .u64 counter)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [counter];
  atom.global.add.u32 %r1, [%rd1], 1;
  ret;
}
.visible .entry poll(.param .u64 counter, .param .u64 result)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [counter];
  ld.param.u64 %rd2, [result];
  ld.volatile.global.u32 %r1, [%rd1];
  st.global.u32 [%rd2], %r1;
  ret;
}
.visible .entry tell(.param .u64 counter, .param .u64 data)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [counter];
  ld.param.u64 %rd2, [data];
  mov.u32 %r1, 1;
  st.global.u32 [%rd2], %r1;
  st.volatile.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry pass(.param .u64 from)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [from];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r1, %r2, %r3, %r1;
  cvt.u64.u32 %rd2, %r1;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u8 %r4, [%rd3];
  ret;
}`;

const size = 64;
const lanes = 3;
const kinds = [
  "move",
  "move",
  "move",
  "peek",
  "peek",
  "fill",
  "copy",
  "graph",
  "read",
  "write",
  "wait",
  "wait",
] as const;

const anyStep = fc.record({
  kind: fc.constantFrom(...kinds, "synchronize" as const, "query" as const),
  lane: fc.nat(lanes - 1),
  other: fc.nat(lanes - 1),
  to: fc.nat(2),
  from: fc.nat(2),
  toAt: fc.nat(size - 1),
  fromAt: fc.nat(size - 1),
  count: fc.integer({ min: 1, max: 24 }),
});
type Step = typeof anyStep extends fc.Arbitrary<infer T> ? T : never;

interface Touch {
  readonly buffer: number;
  readonly start: number;
  readonly end: number;
  readonly writes: boolean;
}

/** A step that touches bytes, and all steps ordered before it. */
interface Node {
  readonly before: bigint;
  readonly touches: readonly Touch[];
  readonly call: string;
  readonly lane: string;
}

/** Which steps are ordered before which: a set of step numbers for each. */
class Judge {
  readonly nodes: Node[] = [];
  readonly #tails: bigint[] = new Array<bigint>(lanes).fill(0n);
  #host = 0n;

  #add(before: bigint, touches: readonly Touch[], call: string, lane: string): bigint {
    let all = before;
    this.nodes.forEach((node, i) => {
      if ((before >> BigInt(i)) & 1n) all |= node.before;
    });
    this.nodes.push({ before: all, touches, call, lane });
    return 1n << BigInt(this.nodes.length - 1);
  }

  enqueue(lane: number, touches: readonly Touch[], call: string, name: string): void {
    this.#tails[lane] = this.#add((this.#tails[lane] ?? 0n) | this.#host, touches, call, name);
  }

  wait(lane: number, other: number): void {
    this.#tails[lane] = (this.#tails[lane] ?? 0n) | (this.#tails[other] ?? 0n);
  }

  synchronize(lane: number): void {
    this.#host |= this.#tails[lane] ?? 0n;
  }

  byHost(touches: readonly Touch[], call: string): void {
    this.#host |= this.#add(this.#host, touches, call, "host");
  }

  /** Unordered pairs of which one changes bytes that the other touches. */
  races(): { first: Node; second: Node; buffer: number; start: number; end: number }[] {
    return this.nodes.flatMap((second, i) =>
      this.nodes.slice(0, i).flatMap((first, j) =>
        (second.before >> BigInt(j)) & 1n ? [] : first.touches.flatMap((a) =>
          second.touches.flatMap((b) => {
            const [start, end] = [Math.max(a.start, b.start), Math.min(a.end, b.end)];
            const collides = a.buffer === b.buffer && start < end && (a.writes || b.writes);
            return collides ? [{ first, second, buffer: a.buffer, start, end }] : [];
          })
        )
      )
    );
  }
}

interface Bench {
  readonly cuda: Cuda;
  readonly streams: readonly CudaStream[];
}

function bench(schedule: Schedule, seed: number, onReport: (report: CausalityReport) => void): Bench {
  const cuda = Cuda.simulate({ schedule, seed, check: { onReport } });
  return { cuda, streams: Array.from({ length: lanes }, () => cuda.device(0).createStream()) };
}

/** Runs a program under the checker and the judge. */
function run(program: readonly Step[], schedule: Schedule, seed: number): { reports: CausalityReport[]; judge: Judge } {
  const reports: CausalityReport[] = [];
  const { cuda, streams } = bench(schedule, seed, (report) => void reports.push(report));
  const device = cuda.device(0);
  const memory = new SynchronousMemoryResource(device);
  const buffers = [memory.allocate(size), memory.allocate(size), new PinnedMemoryResource(device).allocate(size)];
  const module = device.loadPtx(kernels);
  const [move, peek] = [module.kernel("move"), module.kernel("peek")];
  const judge = new Judge();
  const graphs: { close(): void }[] = [];
  const addresses = buffers.map(({ ptr }) => ptr);
  for (const { kind, lane, other, to, from, toAt, fromAt, count } of program) {
    const stream = streams[lane] ?? device.defaultStream;
    const part = (buffer: number, at: number, writes: boolean): Touch => (
      { buffer, start: at, end: Math.min(size, at + count), writes }
    );
    const [target, source] = [part(to, toAt, true), part(from, fromAt, false)];
    const bytes = Math.min(target.end - target.start, source.end - source.start);
    const both = [{ ...target, end: target.start + bytes }, { ...source, end: source.start + bytes }];
    const meet = to === from && Math.abs(toAt - fromAt) < bytes;
    const [toPtr, fromPtr] = [(addresses[to] ?? 0n) + BigInt(toAt), (addresses[from] ?? 0n) + BigInt(fromAt)];
    const name = `stream 0x${stream.handle.toString(16)} of device 0`;
    const driver = cuda.driver;
    switch (kind) {
      case "move":
        move.launch(stream, 1, bytes, [toPtr, fromPtr]);
        judge.enqueue(lane, both, "cuLaunchKernel", name);
        break;
      case "peek":
        peek.launch(stream, 1, bytes, [fromPtr]);
        judge.enqueue(lane, [{ ...source, end: source.start + bytes }], "cuLaunchKernel", name);
        break;
      case "graph": {
        const graph = stream.capture(() => move.launch(stream, 1, bytes, [toPtr, fromPtr]));
        const exec = graph.instantiate();
        exec.launch(stream);
        graphs.push(graph, exec); // closing one queries its completion, and the host would know
        judge.enqueue(lane, both, "cuGraphLaunch", name);
        break;
      }
      case "fill":
        driver.fill.cuMemsetD8Async(toPtr, 1, BigInt(target.end - target.start), stream.handle);
        judge.enqueue(lane, [target], "cuMemsetD8Async", name);
        break;
      case "copy":
        if (meet) break;
        driver.copy.cuMemcpyAsync(toPtr, fromPtr, BigInt(bytes), stream.handle);
        judge.enqueue(lane, both, "cuMemcpyAsync", name);
        if (to === 2 && from === 2) judge.synchronize(lane); // from host to host: the host waits
        break;
      case "read":
      case "write": {
        const at = kind === "read" ? source : target;
        const host = MemoryBuffer.fromPointer((addresses[2] ?? 0n) + BigInt(at.start), at.end - at.start);
        const array = new Uint8Array(host.size);
        if (kind === "read") StridedMemoryView.fromTypedArray(array).copyFrom(viewOf(host));
        else viewOf(host).copyFrom(array);
        judge.byHost([{ ...at, buffer: 2 }], "view.copyFrom()");
        break;
      }
      case "wait":
        if (lane === other) break;
        stream.wait(streams[other] ?? stream);
        judge.wait(lane, other);
        break;
      case "synchronize":
        stream.synchronize();
        judge.synchronize(lane);
        break;
      case "query":
        if (driver.stream.cuStreamQuery(stream.handle) === 0) judge.synchronize(lane);
    }
  }
  for (const stream of streams) stream.synchronize();
  module.close();
  for (const one of [...graphs, ...buffers, ...streams]) one.close();
  cuda.close();
  return { reports, judge };
}

function viewOf(buffer: MemoryBuffer): StridedMemoryView {
  return StridedMemoryView.fromBuffer(buffer, { shape: [buffer.size], dtype: "uint8" });
}

const schedules = fc.constantFrom<Schedule>("latest", "random", "round-robin");

/** Requires that a program is reported if and only if it has a race, and that each report is of one. */
function judged(program: readonly Step[], schedule: Schedule, seed: number): Judged {
  const { reports, judge } = run(program, schedule, seed);
  const races = judge.races();
  assertEquals(reports.length > 0, races.length > 0, reports[0]?.message ?? "nothing was reported");
  let ofKernels = 0;
  for (const { kind, first, second, bytes, message } of reports) {
    assertEquals(kind, "race", message);
    const found = races.some((race) =>
      race.first.call === first?.call && race.second.call === second?.call && race.first.lane === first.stream &&
      race.second.lane === second.stream && bytes <= size
    );
    assert(found, message);
    if (first?.call === "cuLaunchKernel" && second?.call === first.call) ofKernels++;
    for (const call of [first, second]) assert(call?.stack[0]?.includes("kernels_test.ts"), message);
  }
  return { hasRace: races.length > 0, ofKernels };
}
interface Judged {
  readonly hasRace: boolean;
  /** Reports of which both sides are kernels. */
  readonly ofKernels: number;
}

test("kernels, copies, fills and the host are reported if and only if they are unordered, with both calls", () => {
  const counts = { right: 0, wrong: 0, ofKernels: 0 };
  check(
    fc.property(fc.array(anyStep, { minLength: 2, maxLength: 14 }), schedules, fc.nat(), (program, schedule, seed) => {
      const { hasRace, ofKernels } = judged(program, schedule, seed);
      counts[hasRace ? "wrong" : "right"]++;
      counts.ofKernels += ofKernels;
    }),
    300,
  );
  console.log(
    `${counts.right} programs without a race, ${counts.wrong} with one; ${counts.ofKernels} kernels and kernels`,
  );
  assert(Math.min(counts.right, counts.wrong, counts.ofKernels) > scaled(30), "too few of one kind to tell");
});

test("what is forgotten of a long program changes no report: what is unordered with it is with a later step", () => {
  const counts = { right: 0, wrong: 0 };
  const anyPlace = fc.constantFrom(0, 8);
  const anyAlike = fc.record({ // the same bytes again and again: only those are forgotten for each other
    kind: fc.constantFrom("move", "peek", "fill", "wait", "wait", "synchronize"),
    lane: fc.nat(lanes - 1),
    other: fc.nat(lanes - 1),
    to: fc.constant(0),
    from: fc.constant(0),
    toAt: anyPlace,
    fromAt: anyPlace,
    count: fc.constant(8),
  });
  const anyProgram = fc.record({
    before: fc.array(anyAlike, { minLength: 1, maxLength: 3 }),
    body: fc.array(anyAlike, { minLength: 1, maxLength: 3 }),
    times: fc.integer({ min: 30, max: 90 }),
    after: fc.array(anyAlike, { minLength: 1, maxLength: 3 }),
  });
  check(
    fc.property(anyProgram, schedules, fc.nat(), ({ before, body, times, after }, schedule, seed) => {
      const program = [...before, ...Array.from({ length: times }, () => body).flat(), ...after];
      counts[judged(program, schedule, seed).hasRace ? "wrong" : "right"]++;
    }),
    150,
  );
  console.log(`${counts.right} programs without a race, ${counts.wrong} with one`);
  assert(Math.min(counts.right, counts.wrong) > scaled(15), "too few of one kind to tell");
});

/** What is reported about two kernels on two streams, once both have run. */
function ofTwo(launch: (one: CudaStream, other: CudaStream, memory: bigint, run: Launch) => void): string[] {
  const reports: CausalityReport[] = [];
  const { cuda, streams: [one, other] } = bench("latest", 0, (report) => void reports.push(report));
  assert(one !== undefined && other !== undefined);
  const device = cuda.device(0);
  using module = device.loadPtx(kernels);
  {
    using buffer = new SynchronousMemoryResource(device).allocate(size);
    launch(one, other, buffer.ptr, (name, stream, ...pointers) => module.kernel(name).launch(stream, 1, 4, pointers));
    device.synchronize();
  }
  return reports.map(({ first, second, bytes }) => `${first?.does} ${second?.does} ${bytes}`);
}
type Launch = (name: "move" | "peek" | "count" | "poll" | "tell", stream: CudaStream, ...pointers: bigint[]) => void;

test("kernels that signal each other by volatile accesses when to begin are no race, whatever else they touch", () => {
  assertEquals(
    ofTwo((one, other, at, launch) => {
      launch("tell", one, at, at + 8n);
      launch("poll", other, at, at + 8n);
    }),
    [],
  );
  assertEquals(
    ofTwo((one, other, at, launch) => {
      launch("tell", one, at, at + 8n);
      launch("poll", other, at + 16n, at + 8n);
    }),
    ["writes writes 4"],
  );
});

test("the host may poll memory that a kernel signals in, and else must wait for it, whether it has run or not", () => {
  for (const name of ["tell", "move"] as const) {
    for (const hasRun of [false, true]) {
      const reports: CausalityReport[] = [];
      const { cuda, streams: [one] } = bench("latest", 0, (report) => void reports.push(report));
      const device = cuda.device(0);
      using module = device.loadPtx(kernels);
      assert(one !== undefined);
      {
        using buffer = new PinnedMemoryResource(device).allocate(size);
        module.kernel(name).launch(one, 1, 1, [buffer.ptr, buffer.ptr + 8n]);
        if (hasRun) {
          SimulatedDriver.of(cuda.driver)?.runAll();
          device.createEvent().close(); // a call after which the checker sees what has run
        }
        MemoryBuffer.fromPointer(buffer.ptr, 16).copyTo(new Uint8Array(16));
        device.synchronize();
      }
      assertEquals(reports.map(({ kind }) => kind), name === "tell" ? [] : ["race"]);
    }
  }
});

test("a kernel's accesses are to the memory that was allocated when it was launched", () => {
  const reports: CausalityReport[] = [];
  const { cuda, streams: [one, other] } = bench("latest", 0, (report) => void reports.push(report));
  assert(one !== undefined && other !== undefined);
  const device = cuda.device(0);
  using module = device.loadPtx(kernels);
  const memory = device.memory;
  const taken = (): MemoryBuffer => memory.allocate(size, { stream: one });
  const before = taken();
  const { ptr } = before;
  module.kernel("peek").launch(one, 1, 1, [ptr]); // runs late, so memory freed meanwhile must be remembered
  before.close();
  const first = taken();
  other.wait(one);
  module.kernel("move").launch(one, 1, 4, [ptr, ptr + 8n]);
  cuda.driver.fill.cuMemsetD8Async(ptr, 1, 2n, other.handle); // unordered with the kernel
  one.wait(other);
  first.close();
  const second = taken();
  second.fill(1, { stream: one });
  second.close();
  using last = taken();
  assertEquals([first.isClosed, last.ptr], [true, ptr], "the pool gives the same memory again, or this shows nothing");
  assertEquals(reports, []);
  one.synchronize();
  assertEquals(reports.map(({ first, second, bytes }) => [first?.call, second?.call, bytes]), [
    ["cuLaunchKernel", "cuMemsetD8Async", 2],
  ]);
});

test("memory that is freed at once, which makes its kernels run, keeps its history all the same", () => {
  const found = ofTwo((one, other, _, launch) => {
    const buffer = new SynchronousMemoryResource(one.device).allocate(size);
    launch("move", one, buffer.ptr, buffer.ptr + 8n);
    launch("move", other, buffer.ptr + 2n, buffer.ptr + 16n);
    buffer.close();
  });
  assertEquals(found, ["writes writes 2"]);
});

test("work that may race with a waiting kernel is remembered, however much is done and waited for meanwhile", () => {
  const found = ofTwo((one, other, at, launch) => {
    launch("move", one, at, at + 8n);
    enqueueFill(other, at + 2n, 1, 1, 2); // overlaps the kernel's writes
    for (let i = 0; i < 4; i++) {
      for (let j = 0; j < 600; j++) enqueueFill(other, at + 40n, 1, 1, 8);
      other.synchronize();
    }
  });
  assertEquals(found, ["writes writes 2"]);
});

test("a read is remembered, however often others read the same bytes, and a write, however often they are read", () => {
  const two = (first: "peek" | "move", reader: "one" | "other", last: "peek" | "move") =>
    ofTwo((one, other, at, launch) => {
      const run = (name: "peek" | "move", stream: CudaStream): void =>
        launch(name, stream, at, ...(name === "move" ? [at + 16n] : []));
      run(first, one);
      for (let i = 0; i < 200; i++) run("peek", reader === "one" ? one : other);
      one.device.createEvent().close(); // a call after which the checker sees what has run
      run(last, other);
    });
  assertEquals(two("peek", "other", "move"), ["reads writes 4"]);
  assertEquals(two("move", "one", "peek"), ["writes reads 4"]);
});

test("work that waits for a waiting kernel makes nothing forgotten that may race with the kernel", () => {
  const found = ofTwo((one, other, at, launch) => {
    launch("move", one, at, at + 8n);
    enqueueFill(other, at, 1, 1, 4); // unordered with the kernel
    other.wait(one);
    for (let i = 0; i < 200; i++) enqueueFill(other, at, 1, 1, 4);
  });
  assertEquals(found, ["writes writes 4"]);
});

test("of kernels that may order themselves, others are remembered, and so is that they may, however often they run", () => {
  assertEquals(
    ofTwo((one, other, at, launch) => {
      launch("move", one, at, at + 16n);
      for (let i = 0; i < 200; i++) launch("count", one, at);
      one.device.createEvent().close(); // a call after which the checker sees what has run
      launch("count", other, at); // no race with those that count, but with the one that moves
    }),
    ["writes writes 4"],
  );
  assertEquals(
    ofTwo((one, other, at, launch) => {
      launch("move", one, at + 8n, at + 16n);
      for (let i = 0; i < 200; i++) launch("tell", one, at, at + 8n);
      launch("poll", other, at, at + 8n); // it may wait until told
    }),
    ["writes writes 4"],
  );
  assertEquals(
    ofTwo((one, other, at, launch) => {
      launch("poll", one, at, at);
      for (let i = 0; i < 200; i++) launch("peek", one, at + 32n);
      one.device.createEvent().close();
      launch("count", other, at);
    }),
    [],
  );
  assertEquals(
    ofTwo((one, other, at, launch) => {
      launch("tell", one, at, at + 8n);
      for (let i = 0; i < 200; i++) launch("tell", one, at, at + 16n);
      launch("poll", other, at, at + 8n);
    }),
    [],
  );
});

test("bytes between those that kernels of a graph touch are not touched", () => {
  const between = (at: bigint) =>
    ofTwo((one, other, memory, launch) => {
      const graph = one.capture(() => {
        launch("move", one, memory, memory + 8n);
        launch("move", one, memory + 40n, memory + 48n);
      });
      const exec = graph.instantiate();
      exec.launch(one);
      enqueueFill(other, memory + at, 1, 1, 2);
      one.device.synchronize();
      for (const each of [exec, graph]) each.close();
    });
  assertEquals(between(20n), []);
  assertEquals(between(41n), ["writes writes 2"]);
});

test("every access of a kernel that touches much is known", () => {
  const bytes = 20 * 1024;
  const reports: CausalityReport[] = [];
  const { cuda, streams: [one, other] } = bench("latest", 0, (report) => void reports.push(report));
  assert(one !== undefined && other !== undefined);
  const device = cuda.device(0);
  using module = device.loadPtx(kernels);
  {
    using buffer = new SynchronousMemoryResource(device).allocate(2 * bytes);
    module.kernel("pass").launch(one, bytes / 1024, 1024, [buffer.ptr]);
    enqueueFill(other, buffer.ptr, 1, 1, bytes);
    device.synchronize();
  }
  assertEquals(reports.map(({ kind, bytes }) => [kind, bytes]), [["race", bytes]]);
});

test("two kernels are unordered by the bytes that they touch, not by their arguments", () => {
  const two = (to: bigint, from: bigint, ordered = false) =>
    ofTwo((one, other, at, launch) => {
      launch("move", one, at, at + 8n);
      if (ordered) other.wait(one);
      launch("move", other, at + to, at + from);
    });
  assertEquals(two(2n, 16n), ["writes writes 2"]);
  assertEquals(two(16n, 2n), ["writes reads 2"]);
  assertEquals(two(10n, 20n), ["reads writes 2"]);
  assertEquals(two(16n, 8n), []); // both read
  assertEquals(two(4n, 12n), []); // adjacent
  assertEquals(two(2n, 2n, true), []);
  assertEquals(two(0n, 0n), ["writes writes 4"]); // which reads them, too: one report
});

test("kernels that count by atomic additions, and one that polls, are no race; one that only writes there is", () => {
  assertEquals(
    ofTwo((one, other, at, launch) => {
      launch("count", one, at);
      launch("count", other, at);
      launch("poll", other, at, at + 8n);
    }),
    [],
  );
  assertEquals(
    ofTwo((one, other, at, launch) => {
      launch("count", one, at);
      launch("move", other, at, at + 8n);
    }),
    ["writes writes 4"],
  );
});

test("kernels are forgotten once their module is unloaded: a program may load one after the other", () => {
  const { driver } = simulateDriver({});
  const state = new CheckerState(driver, {});
  using cuda = Cuda.over({ ...driver, module: { ...driver.module, ...moduleCalls(state, driver.module) } });
  const [program, other] = [cuda.device(0).loadPtx(kernels), cuda.device(0).loadPtx(kernels)];
  for (const name of ["move", "peek"]) program.kernel(name);
  other.kernel("peek");
  assertEquals(state.kernels.size, 3);
  program.close();
  assertEquals(state.kernels.size, 1);
  other.close();
  assertEquals(state.kernels.size, 0);
});
