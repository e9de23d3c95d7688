/**
 * What the causality checker costs per call, over a driver whose functions do nothing, over the simulator, and on a GPU
 * where there is one, and whether its memory and its time stay flat over many launches. Prints tables, and exits with 1
 * if a budget is exceeded.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { Cuda, type CudaStream, DeviceMemoryResource, type MemoryBuffer } from "../mod.ts";
import type { CudaDriver } from "../src/driver/driver.ts";
import { NativeArena } from "../src/ffi/arena.ts";
import { checkDriver } from "../src/checker/mod.ts";
import { simulateDriver } from "../src/sim/mod.ts";
import { collectGarbage } from "../tests/support/collect.ts";
import { nullDriver } from "../tests/support/null_driver.ts";

const ptx = fileURLToPath(new URL("../tests/data/ptx/arrays.sm_90.ptx", import.meta.url));
/** Microseconds that the checker may add to a call. */
const budget = 3;
/** Calls per round, and rounds: the fastest counts, because the machine is shared. */
const [calls, rounds] = [20_000, 15];

/** The measured calls, on one driver. */
class Subject {
  readonly driver: CudaDriver;
  readonly streams: readonly [bigint, bigint];
  readonly event: bigint;
  readonly buffers: readonly bigint[];
  readonly kernel: bigint;
  readonly #arena = new NativeArena();
  readonly #out = this.#arena.out("ptr");
  readonly #params: bigint;

  constructor(driver: CudaDriver) {
    this.driver = driver;
    driver.opening.cuInit(0);
    const context = this.#word((out) => driver.context.cuDevicePrimaryCtxRetain(out, 0));
    driver.context.cuCtxSetCurrent(context);
    const stream = () => this.#word((out) => driver.stream.cuStreamCreate(out, 1));
    this.streams = [stream(), stream()];
    this.event = this.#word((out) => driver.event.cuEventCreate(out, 2));
    this.buffers = Array.from({ length: 3 }, () => this.#word((out) => driver.memory.cuMemAlloc_v2(out, 64n)));
    const image = this.#arena.cString(readFileSync(ptx, "utf8"));
    const module = this.#word((out) => driver.module.cuModuleLoadData(out, image));
    const name = new TextEncoder().encode("saxpy\0");
    this.kernel = this.#word((out) => driver.module.cuModuleGetFunction(out, module, name));
    const values = this.#arena.bytes(32);
    const pointers = this.#arena.bytes(32);
    const [value, pointer] = [
      new DataView(values.bytes.buffer, values.bytes.byteOffset),
      new DataView(pointers.bytes.buffer, pointers.bytes.byteOffset),
    ];
    [0n, this.buffers[0] ?? 0n, this.buffers[1] ?? 0n, 0n].forEach((argument, i) => {
      value.setBigUint64(8 * i, argument, true); // no elements: the simulator has nothing to interpret
      pointer.setBigUint64(8 * i, values.address + BigInt(8 * i), true);
    });
    this.#params = pointers.address;
  }

  #word(call: (out: bigint) => number): bigint {
    const code = call(this.#out.$address);
    if (code !== 0) throw new Error(`CUresult ${code}`);
    return this.#out.value;
  }

  /** The measured calls; each may be repeated any number of times. */
  get works(): ReadonlyMap<string, () => void> {
    const { driver: { fill, copy, event, stream, pool, kernel, context }, streams: [one, other], event: mark } = this;
    const [a = 0n, b = 0n] = this.buffers;
    const out = this.#out;
    return new Map<string, () => void>([
      ["push + pop of a context", () => {
        context.cuCtxPushCurrent_v2(0x1000n);
        context.cuCtxPopCurrent_v2(out.$address);
      }],
      ["fill", () => void fill.cuMemsetD8Async(a, 1, 64n, one)],
      ["copy", () => void copy.cuMemcpyDtoDAsync_v2(b, a, 64n, one)],
      [
        "launch of 4 arguments",
        () => void kernel.cuLaunchKernel(this.kernel, 1, 1, 1, 32, 1, 1, 0, one, this.#params, 0n),
      ],
      ["record", () => void event.cuEventRecord(mark, one)],
      ["wait", () => void stream.cuStreamWaitEvent(other, mark, 0)],
      ["query", () => void event.cuEventQuery(mark)],
      ["allocate + free (2 calls)", () => {
        pool.cuMemAllocAsync(out.$address, 4096n, one);
        pool.cuMemFreeAsync(out.value, one);
      }],
    ]);
  }
}

/** Driver calls that a measured piece of work makes. */
function callsOf(what: string): number {
  return /2 calls|push/.test(what) ? 2 : 1;
}

/** Microseconds per call, with what the calls left to do: the simulator runs some of it only when the host waits. */
function round(work: () => void, finish: () => void, times: number): number {
  const start = performance.now();
  for (let i = 0; i < times; i++) work();
  finish();
  return (performance.now() - start) * 1000 / times;
}

/** Measures two functions in alternation; returns microseconds of the fastest round of each. */
function beside(
  [ours, finishOurs]: readonly [() => void, () => void],
  [floor, finishFloor]: readonly [() => void, () => void],
  times: number,
): [ours: number, floor: number] {
  let [best, bestFloor] = [Infinity, Infinity];
  for (let turn = 0; turn < rounds; turn++) {
    bestFloor = Math.min(bestFloor, round(floor, finishFloor, times));
    best = Math.min(best, round(ours, finishOurs, times));
  }
  return [best, bestFloor];
}

interface Row {
  readonly what: string;
  readonly bare: number;
  readonly checked: number;
  readonly added: number;
}

function measure(name: string, make: () => CudaDriver, times: number): Row[] {
  const [bare, checked] = [new Subject(make()), new Subject(checkDriver(make()).driver)];
  return [...checked.works].flatMap(([what, work]) => {
    if (name === "simulator" && /push|query/.test(what)) return []; // its handles differ, and a query makes work run
    const floor = bare.works.get(what);
    if (floor === undefined) return [];
    const finish = ({ driver }: Subject) => () => void driver.context.cuCtxSynchronize();
    const [ours, theirs] = beside([work, finish(checked)], [floor, finish(bare)], times);
    return [{ what: `${name}: ${what}`, bare: theirs, checked: ours, added: (ours - theirs) / callsOf(what) }];
  });
}

/** The same on a GPU, where there is one, through the package's own objects: first all bare, then all checked. */
function measureGpu(): Row[] {
  if (!Cuda.probe().available) return [];
  const works: Readonly<Record<string, (stream: CudaStream, buffer: MemoryBuffer) => () => void>> = {
    "fill": (stream, buffer) => () => buffer.fill(1, { stream }),
    "record and wait (2 calls)": (stream) => () => stream.device.defaultStream.wait(stream),
    "make and close an event (2 calls)": (stream) => () => stream.device.createEvent().close(),
    "query": (stream) => () => void stream.isDone,
  };
  const fastest = (check: boolean): ReadonlyMap<string, number> => {
    using cuda = Cuda.open({ check });
    const device = cuda.device(0);
    using stream = device.createStream();
    using resource = new DeviceMemoryResource(device, {});
    using buffer = resource.allocate(4096, { stream });
    return new Map(
      Object.entries(works).map(([what, make]) => {
        const work = make(stream, buffer);
        let best = Infinity;
        for (let turn = 0; turn < rounds; turn++) {
          best = Math.min(best, round(work, () => {}, 500));
          device.synchronize();
        }
        return [what, best];
      }),
    );
  };
  const [floors, checked] = [fastest(false), fastest(true)];
  return [...checked].map(([what, ours]) => {
    const bare = floors.get(what) ?? NaN;
    return { what: `a GPU: ${what}`, bare, checked: ours, added: (ours - bare) / callsOf(what) };
  });
}

/** Megabytes of live JavaScript objects. */
async function heap(): Promise<number> {
  await collectGarbage();
  return process.memoryUsage().heapUsed / 2 ** 20;
}

/** A long-running program: two streams, events, kernels and copies, with the host waiting now and then, or never. */
async function longRun(
  launches: number,
  waits: boolean,
): Promise<{ readonly early: number; readonly late: number; readonly seconds: number }> {
  const subject = new Subject(checkDriver(nullDriver().driver).driver);
  const works = [...subject.works].filter(([what]) => waits || what !== "query").map(([, work]) => work);
  const run = (count: number) => {
    for (let i = 0; i < count; i++) works[i % works.length]?.();
  };
  const { driver, streams: [one, other], event } = subject;
  const turn = () => { // the second stream writes, and the first one waits for it
    run(works.length);
    driver.event.cuEventRecord(event, one);
    driver.stream.cuStreamWaitEvent(other, event, 0);
    driver.fill.cuMemsetD8Async(subject.buffers[2] ?? 0n, 1, 64n, other);
  };
  const start = performance.now();
  for (let i = 0; i < launches / 20; i++) turn();
  const early = await heap();
  for (let i = 0; i < launches * 19 / 20; i++) turn();
  return { early, late: await heap(), seconds: (performance.now() - start) / 1000 };
}

/**
 * Microseconds per launch on the simulator, of the last tenth of as many launches, while the host never waits: each of
 * the same 64 bytes, or each of the next ones.
 */
function simulatedRun(check: boolean, launches: number, moves: boolean): number {
  using cuda = Cuda.simulate({ seed: 1, check });
  const device = cuda.device(0);
  using stream = device.createStream();
  using module = device.loadPtx(readFileSync(ptx, "utf8"));
  using resource = new DeviceMemoryResource(device);
  using x = resource.allocate(64 * launches, { stream });
  using y = resource.allocate(64 * launches, { stream });
  const saxpy = module.kernel("saxpy");
  let at = 0n;
  const launch = () => {
    saxpy.launch(stream, 1, 16, [["float32", 2], x.ptr + at, y.ptr + at, ["int32", 16]]);
    if (moves) at += 64n;
  };
  for (let i = 0; i < launches * 9 / 10; i++) launch();
  return round(launch, () => {}, launches / 10);
}

const rows = [
  ...measure("nothing", () => nullDriver().driver, calls),
  ...measure("simulator", () => simulateDriver({ schedule: "round-robin" }).driver, 2000),
  ...measureGpu(),
];
const { name, version } = process.versions["bun"] === undefined
  ? { name: "Deno", version: process.versions["deno"] }
  : { name: "Bun", version: process.versions["bun"] };
console.log(
  `${name} ${version}, ${cpus()[0]?.model ?? "unknown CPU"}, ${cpus().length} CPUs, ${
    new Date().toISOString().slice(0, 10)
  }\n`,
);
console.log("| call | bare, us | checked, us | added per call, us | of the budget of 3 us |");
console.log("| --- | ---: | ---: | ---: | ---: |");
for (const { what, bare, checked, added } of rows) {
  console.log(
    `| ${what} | ${bare.toFixed(3)} | ${checked.toFixed(3)} | ${added.toFixed(2)} | ${(added / budget).toFixed(2)} |`,
  );
}
const launches = Number(process.argv[2] ?? 1_000_000);
let isFlat = true;
for (const waits of [true, false]) {
  const { early, late, seconds } = await longRun(launches, waits);
  isFlat &&= late - early < 4;
  console.log(
    `\n${launches} launches among other calls, the host ${waits ? "waiting each time" : "never waiting"}: ` +
      `${early.toFixed(1)} MB after a twentieth, ${late.toFixed(1)} MB at the end, ${seconds.toFixed(0)} s`,
  );
}
console.log(
  "\n20,000 launches of 16 threads on the simulator, the host never waiting; us per launch of the last 2,000\n",
);
console.log("| each touches | bare, us | checked, us |");
console.log("| --- | ---: | ---: |");
for (const moves of [false, true]) {
  const [bare, checked] = [simulatedRun(false, 20_000, moves), simulatedRun(true, 20_000, moves)];
  isFlat &&= checked < 10 * bare; // it was 60 times as much when it grew with every launch
  console.log(`| the ${moves ? "next" : "same"} bytes | ${bare.toFixed(0)} | ${checked.toFixed(0)} |`);
}
// The simulator's own time varies by more than the checker costs: its rows are for information only.
const slow = rows.filter(({ what, added }) => !what.startsWith("simulator") && added > budget);
if (slow.length > 0) console.log(`\nover the budget: ${slow.map(({ what }) => what).join(", ")}`);
if (slow.length > 0 || !isFlat) process.exitCode = 1;
