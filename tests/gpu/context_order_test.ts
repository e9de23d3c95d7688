/**
 * Whether work of one device waits for work of another one, by every kind of event, memory and stream apart: where random
 * programs find wrong bytes on GPUs, this tells which of them is to blame.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, DeviceMemoryResource, ManagedMemoryResource, type MemoryBuffer } from "../../mod.ts";
import type { CudaDriver } from "../../src/cuda/driver.ts";
import { libcuda } from "../../src/cuda/driver.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { Raw } from "../sim/raw.ts";
import { patiently } from "../support/child.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { scaled } from "../support/property.ts";

/** One way to read on device 1 what device 0 overwrites afterwards. */
interface Way {
  /** What the event stands for that the writer waits for: the reader's stream, all of its context; or no event at all. */
  readonly records: "stream" | "context" | "nothing";
  readonly memory: "managed" | "pool";
  /** What the reader waits for, which takes a while: so it is not done when the event is recorded. */
  readonly behind: "nothing" | "its own device" | "the other device";
  readonly call: "cuMemcpyDtoHAsync_v2" | "cuMemcpyAsync";
  /** The writer's stream. */
  readonly writer: "legacy" | "created";
}

/** All of them. */
function combine(): Way[] {
  const ways: Way[] = [];
  for (const records of ["stream", "context", "nothing"] as const) {
    for (const memory of ["managed", "pool"] as const) {
      for (const behind of ["nothing", "its own device", "the other device"] as const) {
        for (const call of ["cuMemcpyDtoHAsync_v2", "cuMemcpyAsync"] as const) {
          for (const writer of ["legacy", "created"] as const) ways.push({ records, memory, behind, call, writer });
        }
      }
    }
  }
  return ways;
}

const bytes = 16;
const each = 4;

/** How often the reader got bytes that were written after it, of so many trials. */
function countWrong(driver: CudaDriver, buffer: MemoryBuffer, slow: readonly MemoryBuffer[], way: Way, trials: number) {
  using raw = new Raw(driver, 2);
  const { fill, copy, stream, event, context } = driver;
  raw.use(1);
  const reader = raw.stream(1);
  const beside = [0, 1].map((device) => (raw.use(device), raw.stream(1)));
  raw.use(0);
  const writer = way.writer === "legacy" ? 1n : raw.stream(1);
  const slot = raw.pinned(bytes);
  const record = (device: number, handle: bigint) => {
    raw.use(device);
    const mark = raw.word((out) => event.cuEventCreate(out, 2));
    if (handle !== 0n) raw.ok(event.cuEventRecord(mark, handle));
    else if (context.cuCtxRecordEvent !== null) raw.ok(context.cuCtxRecordEvent(raw.context(device), mark));
    return mark;
  };
  const wait = (device: number, handle: bigint, mark: bigint) => {
    raw.use(device);
    raw.ok(stream.cuStreamWaitEvent(handle, mark, 0));
    raw.ok(event.cuEventDestroy_v2(mark)); // the wait outlives it
  };
  const both = [0, 1];
  const synchronize = () => both.forEach((device) => (raw.use(device), raw.ok(context.cuCtxSynchronize())));
  let wrong = 0;
  for (let trial = 0; trial < trials; trial++) {
    raw.use(0);
    raw.ok(fill.cuMemsetD8Async(buffer.ptr, 2, BigInt(bytes), writer));
    raw.ok(context.cuCtxSynchronize());
    if (way.behind !== "nothing") {
      const device = way.behind === "its own device" ? 1 : 0;
      const handle = beside[device] ?? 0n;
      const { ptr = 0n, size = 0 } = slow[device] ?? {};
      raw.use(device);
      for (let again = 0; again < 4; again++) raw.ok(fill.cuMemsetD8Async(ptr, 1, BigInt(size), handle));
      wait(1, reader, record(device, handle));
    }
    raw.use(1);
    for (let at = 0; at < bytes; at += each) {
      const [to, from] = [slot.address + BigInt(at), buffer.ptr + BigInt(at)];
      raw.ok(copy[way.call](to, from, BigInt(each), reader));
    }
    if (way.records !== "nothing") wait(0, writer, record(1, way.records === "context" ? 0n : reader));
    raw.use(0);
    for (let at = 0; at < bytes; at += each) {
      raw.ok(fill.cuMemsetD8Async(buffer.ptr + BigInt(at), 3, BigInt(each), writer));
    }
    synchronize();
    if (slot.bytes.some((value) => value !== 2)) wrong++;
  }
  return wrong;
}

/** Tries all ways, says what came of each, and returns those of each kind that went wrong. */
function runWays(cuda: Cuda, trials: number, slowBytes: number): { ordered: string[]; free: string[] } {
  const [owner, peer] = [cuda.device(0), cuda.device(1)];
  using home = owner.createStream();
  using pool = new DeviceMemoryResource(owner, {});
  pool.peerAccessibleBy = [peer];
  using managed = new ManagedMemoryResource(owner).allocate(bytes, { stream: home });
  using pooled = pool.allocate(bytes, { stream: home });
  using here = owner.memory.allocate(slowBytes, { stream: home });
  using abroad = peer.createStream();
  using there = peer.memory.allocate(slowBytes, { stream: abroad });
  home.synchronize();
  abroad.synchronize();
  const ordered: string[] = [];
  const free: string[] = [];
  const lines = combine().map((way) => {
    const buffer = way.memory === "managed" ? managed : pooled;
    const wrong = countWrong(cuda.driver, buffer, [here, there], way, trials);
    const line = `| ${Object.values(way).join(" | ")} | ${wrong} of ${trials} |`;
    if (wrong > 0) (way.records === "nothing" ? free : ordered).push(line);
    return line;
  });
  console.log(`| records | memory | behind | call | writer | wrong |\n|---|---|---|---|---|---|\n${lines.join("\n")}`);
  return { ordered, free };
}

test("a simulated writer on another device comes after the reader, whatever event says so", () => {
  for (const seed of [1, 2, 3]) {
    using cuda = Cuda.simulate({ devices: 2, seed });
    assertEquals(runWays(cuda, 5, 64).ordered, []);
  }
});

const [title, options] = needs(
  missingGpus(2),
  "a writer on another GPU comes after the reader, whatever event says so, and before it if none does",
);
test(title, { ...options, ...patiently }, () => {
  using _contexts = new Raw(openLibrary(libcuda).functions, 2);
  using cuda = Cuda.open();
  const { ordered, free } = runWays(cuda, scaled(100), 256 * 2 ** 20);
  assertEquals(ordered, []);
  assert(free.length > 0, "without an event the reader would see the writer's bytes: else this shows nothing");
});
