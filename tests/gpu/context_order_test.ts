/**
 * Whether work of one device waits for work of another one, by every kind of event, memory and stream apart: where random
 * programs find wrong bytes on GPUs, this tells which of them is to blame.
 */
import { assertEquals } from "@std/assert";
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
  /** What the event stands for: the reader's stream, or all of its context. */
  readonly records: "stream" | "context";
  /** Whether the event is destroyed as soon as it is waited for, as the driver allows. */
  readonly isDestroyed: boolean;
  readonly memory: "managed" | "pool";
  /** How many copies read the 16 bytes. */
  readonly copies: 1 | 4;
  /** The writer's stream. */
  readonly writer: "legacy" | "created";
}

const ways: readonly Way[] = (["stream", "context"] as const).flatMap((records) =>
  [false, true].flatMap((isDestroyed) =>
    (["managed", "pool"] as const).flatMap((memory) =>
      ([1, 4] as const).flatMap((copies) =>
        (["legacy", "created"] as const).map((writer) => ({ records, isDestroyed, memory, copies, writer }))
      )
    )
  )
);

const bytes = 16;

/** How often the reader got bytes that were written after it, of so many trials. */
function countWrong(driver: CudaDriver, buffer: MemoryBuffer, way: Way, trials: number): number {
  using raw = new Raw(driver, 2);
  const { fill, copy, stream, event, context } = driver;
  raw.use(1);
  const reader = raw.stream(1);
  raw.use(0);
  const writer = way.writer === "legacy" ? 1n : raw.stream(1);
  const slot = raw.pinned(bytes);
  const each = bytes / way.copies;
  let wrong = 0;
  for (let trial = 0; trial < trials; trial++) {
    raw.use(0);
    raw.ok(fill.cuMemsetD8Async(buffer.ptr, 2, BigInt(bytes), writer));
    raw.ok(context.cuCtxSynchronize());
    raw.use(1);
    for (let at = 0; at < bytes; at += each) {
      raw.ok(copy.cuMemcpyDtoHAsync_v2(slot.address + BigInt(at), buffer.ptr + BigInt(at), BigInt(each), reader));
    }
    const mark = raw.word((out) => event.cuEventCreate(out, 2));
    raw.ok(
      way.records === "context" && context.cuCtxRecordEvent !== null
        ? context.cuCtxRecordEvent(raw.context(1), mark)
        : event.cuEventRecord(mark, reader),
    );
    raw.use(0);
    raw.ok(stream.cuStreamWaitEvent(writer, mark, 0));
    if (way.isDestroyed) raw.ok(event.cuEventDestroy_v2(mark));
    for (let at = 0; at < bytes; at += 4) raw.ok(fill.cuMemsetD8Async(buffer.ptr + BigInt(at), 3, 4n, writer));
    for (const device of [0, 1]) {
      raw.use(device);
      raw.ok(context.cuCtxSynchronize());
    }
    if (!way.isDestroyed) raw.ok(event.cuEventDestroy_v2(mark));
    if (slot.bytes.some((value) => value !== 2)) wrong++;
  }
  return wrong;
}

function runWays(cuda: Cuda, trials: number): void {
  const [owner, peer] = [cuda.device(0), cuda.device(1)];
  using home = owner.createStream();
  using pool = new DeviceMemoryResource(owner, {});
  pool.peerAccessibleBy = [peer];
  using managed = new ManagedMemoryResource(owner).allocate(bytes, { stream: home });
  using pooled = pool.allocate(bytes, { stream: home });
  home.synchronize();
  const found = ways.map((way) => {
    const wrong = countWrong(cuda.driver, way.memory === "managed" ? managed : pooled, way, trials);
    return `${Object.values(way).join(" ")}: ${wrong} of ${trials}`;
  });
  console.log(`records isDestroyed memory copies writer: wrong\n${found.join("\n")}`);
  assertEquals(found.filter((line) => !line.includes(": 0 of")), []);
}

test("a simulated writer on another device comes after the reader, whatever event says so", () => {
  for (const seed of [1, 2, 3]) {
    using cuda = Cuda.simulate({ devices: 2, seed });
    runWays(cuda, 5);
  }
});

const [title, options] = needs(
  missingGpus(2),
  "a writer on another GPU comes after the reader, whatever event says so",
);
test(title, { ...options, ...patiently }, () => {
  using _contexts = new Raw(openLibrary(libcuda).functions, 2);
  using cuda = Cuda.open();
  runWays(cuda, scaled(300));
});
