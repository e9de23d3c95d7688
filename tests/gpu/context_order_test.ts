/**
 * Whether a writer waits for a reader on another stream, on its own device or another one, for each kind of event,
 * memory and access separately. The release of an export is ordered by an event of a whole context: this is what the
 * driver promises of it, and what it keeps.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  type CudaDevice,
  CudaStream,
  DeviceMemoryResource,
  type Kernel,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
} from "../../mod.ts";
import { libcuda } from "../../src/driver/driver.ts";
import { libc } from "../../src/ffi/libc.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { Raw } from "../support/raw_driver.ts";
import { patiently } from "../support/child.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { scaled } from "../support/property.ts";

const events = ["stream", "context", "every context", "nothing"] as const;
const memories = ["pool", "managed", "pinned"] as const;
const delays = ["its own device", "the other device", "the host"] as const;
const accesses = ["copy to the host", "copy to a device", "peer copy", "kernel"] as const;

/** One way to read what another stream overwrites afterwards. */
interface Way {
  /** What the writer waits for: the reader's stream, its whole context, both devices' contexts, or nothing. */
  readonly event: (typeof events)[number];
  readonly reader: "same device" | "other device";
  readonly memory: (typeof memories)[number];
  /** Slow work that the reader waits for: it is not done, and may not have begun, when the event is recorded. */
  readonly behind: (typeof delays)[number];
  readonly access: (typeof accesses)[number];
}

function combine(devices: number): Way[] {
  const ways: Way[] = [];
  for (const event of events) {
    for (const reader of ["same device", "other device"] as const) {
      if (reader === "other device" && devices === 1) continue;
      for (const memory of memories) {
        for (const behind of delays) {
          if (behind === "the other device" && devices === 1) continue;
          for (const access of accesses) ways.push({ event, reader, memory, behind, access });
        }
      }
    }
  }
  return ways;
}

/** A kernel that moves 16 bytes. */
const ptx = `.version 6.4
.target sm_52
.address_size 64
.visible .entry move(.param .u64 to, .param .u64 from)
{
  .reg .b64 %rd<7>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  ld.global.u64 %rd5, [%rd4];
  ld.global.u64 %rd6, [%rd4+8];
  st.global.u64 [%rd3], %rd5;
  st.global.u64 [%rd3+8], %rd6;
  ret;
}
`;

const bytes = 16;

/**
 * What driver 580 does not keep: an event of a context completes before the copies of managed memory to the host on the
 * context's streams, if the memory's home is another device. An event of that device's context completes after them.
 */
function isUnreliable({ event, reader, memory, access }: Way): boolean {
  return event === "context" && reader === "other device" && memory === "managed" && access === "copy to the host";
}

/** The resources that the ways are tried with. */
interface Ground {
  readonly cuda: Cuda;
  readonly memory: { readonly [memory in Way["memory"]]: MemoryBuffer };
  /** By device: a copy target, a large buffer to fill, and the kernel. */
  readonly near: readonly MemoryBuffer[];
  readonly long: readonly MemoryBuffer[];
  readonly kernels: readonly Kernel[];
  /** How long the host blocks a stream, in microseconds. */
  readonly pause: bigint;
}

/** How often, in the given trials, the reader got bytes that were written after its read. */
function countWrong({ cuda, memory, near, long, kernels, pause }: Ground, way: Way, trials: number): number {
  const { driver } = cuda;
  const { fill, copy, stream, event, context } = driver;
  using raw = new Raw(driver, kernels.length);
  const streams = kernels.map((_, device) => (raw.use(device), [raw.stream(1), raw.stream(1), raw.stream(1)] as const));
  const readers = way.reader === "same device" ? 0 : 1;
  const [reader = 0n] = streams[readers] ?? [];
  const [, writer = 0n] = streams[0] ?? [];
  const slot = raw.pinned(bytes);
  const ptr = memory[way.memory].ptr;
  const wait = (waiting: bigint, device: number, record: (mark: bigint) => number) => {
    raw.use(device);
    const mark = raw.word((out) => event.cuEventCreate(out, 2));
    raw.ok(record(mark));
    raw.ok(stream.cuStreamWaitEvent(waiting, mark, 0));
    raw.ok(event.cuEventDestroy_v2(mark)); // the wait outlives it
  };
  const synchronize = () => {
    for (let device = 0; device < kernels.length; device++) {
      raw.use(device);
      raw.ok(context.cuCtxSynchronize());
    }
  };
  const delay = () => {
    if (way.behind === "the host") {
      raw.use(readers);
      return raw.ok(stream.cuLaunchHostFunc(reader, usleep, pause));
    }
    const device = way.behind === "its own device" ? readers : 1 - readers;
    const [, , slow = 0n] = streams[device] ?? [];
    const { ptr = 0n, size = 0 } = long[device] ?? {};
    raw.use(device);
    for (let again = 0; again < 4; again++) raw.ok(fill.cuMemsetD8Async(ptr, 1, BigInt(size), slow));
    wait(reader, device, (mark) => event.cuEventRecord(mark, slow));
  };
  const read = () => {
    const home = cuda.device(readers);
    raw.use(readers);
    if (way.access === "copy to the host") raw.ok(copy.cuMemcpyAsync(slot.address, ptr, BigInt(bytes), reader));
    if (way.access === "copy to a device") {
      const there = near[readers]?.ptr ?? 0n;
      raw.ok(copy.cuMemcpyAsync(there, ptr, BigInt(bytes), reader));
      raw.ok(copy.cuMemcpyDtoHAsync_v2(slot.address, there, BigInt(bytes), reader));
    }
    if (way.access === "peer copy") {
      const there = near[readers]?.ptr ?? 0n;
      const [owner, user] = [raw.context(0), raw.context(readers)];
      raw.ok(copy.cuMemcpyPeerAsync(there, user, ptr, owner, BigInt(bytes), reader));
      raw.ok(copy.cuMemcpyDtoHAsync_v2(slot.address, there, BigInt(bytes), reader));
    }
    if (way.access === "kernel") {
      kernels[readers]?.launch(CudaStream.fromHandle(home, reader), 1, 1, [slot.address, ptr]);
    }
  };
  let wrong = 0;
  for (let trial = 0; trial < trials; trial++) {
    raw.use(0);
    raw.ok(fill.cuMemsetD8Async(ptr, 2, BigInt(bytes), writer));
    synchronize();
    delay();
    read();
    const all = context.cuCtxRecordEvent;
    if (way.event === "stream") wait(writer, readers, (mark) => event.cuEventRecord(mark, reader));
    if (way.event === "context" && all !== null) wait(writer, readers, (mark) => all(raw.context(readers), mark));
    if (way.event === "every context") raw.waitForContexts(0, writer);
    raw.use(0);
    raw.ok(fill.cuMemsetD8Async(ptr, 3, BigInt(bytes), writer));
    synchronize();
    if (slot.bytes.some((value) => value !== 2)) wrong++;
  }
  return wrong;
}

const usleep = libc().loading.dlsym(0n, cString("usleep"));

/** Tries all ways: the results as a table, and the ways with and without an event that went wrong. */
function runWays(
  devices: readonly CudaDevice[],
  cuda: Cuda,
  trials: number,
  longBytes: number,
  pause: bigint,
): { table: string; ordered: string[]; free: string[] } {
  const [owner = cuda.device(0)] = devices;
  using home = owner.createStream();
  using pool = new DeviceMemoryResource(owner, {});
  pool.peerAccessibleBy = devices;
  using pooled = pool.allocate(bytes, { stream: home });
  using managed = new ManagedMemoryResource(owner).allocate(bytes, { stream: home });
  using pinned = new PinnedMemoryResource(owner).allocate(bytes, { stream: home });
  const on = (device: CudaDevice, size: number) => device.memory.allocate(size, { stream: device.defaultStream });
  const near = devices.map((device) => on(device, bytes));
  const long = devices.map((device) => on(device, longBytes));
  const programs = devices.map((device) => device.loadPtx(ptx));
  devices.forEach((device) => device.synchronize());
  const kernels = programs.map((program) => program.kernel("move"));
  const ground = { cuda, memory: { pool: pooled, managed, pinned }, near, long, kernels, pause };
  const ordered: string[] = [];
  const free: string[] = [];
  const lines = combine(devices.length).map((way) => {
    const wrong = countWrong(ground, way, trials);
    const line = `| ${Object.values(way).join(" | ")} | ${wrong} of ${trials} |`;
    if (wrong > 0 && !isUnreliable(way)) (way.event === "nothing" ? free : ordered).push(line);
    return line;
  });
  for (const one of [...near, ...long, ...programs]) one.close();
  const table = `| event | reader | memory | behind | access | wrong |\n|---|---|---|---|---|---|\n${lines.join("\n")}`;
  return { table, ordered, free };
}

test("a simulated writer comes after the reader, whatever event says so", () => {
  for (const seed of [1, 2, 3]) {
    using cuda = Cuda.simulate({ devices: 2, seed, check: false });
    assertEquals(runWays(cuda.devices, cuda, 3, 64, 1n).ordered, []);
  }
});

for (const devices of [1, 2]) {
  const name = `a writer comes after the reader on ${devices} GPUs, whatever event says so, and before it if none does`;
  const [title, options] = needs(missingGpus(devices), name);
  test(title, { ...options, ...patiently }, () => {
    const { functions } = openLibrary(libcuda);
    using _contexts = new Raw(functions, devices);
    using cuda = Cuda.open({ check: false }); // the checker would report the controls, which race
    const { table, ordered, free } = runWays(cuda.devices.slice(0, devices), cuda, scaled(30), 256 * 2 ** 20, 500n);
    console.log(table);
    assertEquals(ordered, []);
    assert(free.length > 0, "without an event the reader would see the writer's bytes: else this shows nothing");
  });
}
