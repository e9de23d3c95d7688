/** 10,000 opens and closes of GPU objects leave host and device memory unchanged. */
import { assert } from "@std/assert";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Cuda, type CudaDevice, type CudaStream, DeviceMemoryResource, StridedMemoryView } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { collectGarbage } from "../support/collect.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { scaled } from "../support/property.ts";

const missing = missingGpus();

/** One cycle, by the resource that it opens and closes. */
const cycles: { readonly [resource: string]: (device: CudaDevice, stream: CudaStream) => void } = {
  stream: (device) => device.createStream().close(),
  event: (device) => device.createEvent().close(),
  "recorded event": (_, stream) => stream.record().close(),
  "device buffer": (device, stream) => new DeviceMemoryResource(device).allocate(65536, { stream }).close(),
  "DLPack export of device memory": (device, stream) => {
    using buffer = new DeviceMemoryResource(device).allocate(65536, { stream });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [65536], dtype: "uint8" });
    StridedMemoryView.fromDlpack(view.toDlpack({ stream }), { stream }).close();
  },
};

interface Growth {
  readonly host: number;
  readonly device: number;
}

/**
 * The smallest growth in several windows of time. A leak grows in each of them; a heap not yet collected, or an
 * allocator's cache, does not.
 */
async function windows(count: number, measure: () => Promise<Growth>): Promise<Growth> {
  await measure(); // warm-up: compiles code and fills caches
  const all: Growth[] = [];
  for (let i = 0; i < count; i++) all.push(await measure());
  return { host: Math.min(...all.map(({ host }) => host)), device: Math.min(...all.map(({ device }) => device)) };
}

/** Lets the event loop turn occasionally: until it does, JavaScript keeps every object that a WeakRef was made of. */
async function repeat(rounds: number, cycle: () => void): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    cycle();
    if (i % 100 === 99) await nextTurn();
  }
  await collectGarbage();
}

function resident(): number {
  return Number(readFileSync("/proc/self/statm", "utf8").split(" ")[1]) * 4096;
}

for (const [resource, cycle] of Object.entries(cycles)) {
  test(...needs(missing, `10,000 cycles of ${resource} leave memory flat`), async () => {
    using cuda = Cuda.open();
    using arena = new NativeArena();
    const device = cuda.device(0);
    using stream = device.createStream();
    const [free, total] = [arena.out("size"), arena.out("size")];
    const freeOnDevice = () => {
      device.synchronize();
      device.withContext(() => cuda.driver.memory.cuMemGetInfo_v2(free.$address, total.$address));
      return free.value;
    };
    const rounds = scaled(10_000);
    const grown = await windows(6, async () => {
      const before = { host: resident(), device: freeOnDevice() };
      await repeat(rounds, () => cycle(device, stream));
      return { host: (resident() - before.host) / rounds, device: (before.device - freeOnDevice()) / rounds };
    });
    assert(grown.host < 64, `at least ${grown.host} bytes of host memory per cycle are lost`);
    assert(grown.device < 16, `at least ${grown.device} bytes of device memory per cycle are lost`);
  });
}

test(...needs(missing, "1,000 cycles of Cuda.open leave memory flat"), async () => {
  const cycle = () => {
    using cuda = Cuda.open();
    cuda.device(0).attribute("MULTIPROCESSOR_COUNT");
  };
  const grown = await windows(6, async () => {
    const before = resident();
    await repeat(1000, cycle);
    return { host: (resident() - before) / 1000, device: 0 };
  });
  assert(grown.host < 640, `at least ${grown.host} bytes per cycle are lost`);
});
