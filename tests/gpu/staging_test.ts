/** Large copies of pageable host memory on a real device: staged by native threads, and right to the byte. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, DeviceMemoryResource, HostMemoryResource, StridedMemoryView } from "../../mod.ts";
import { canStartThreads } from "../../src/native/thread_team.ts";
import { planStaging } from "../../src/memory/staging_plan.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

const MiB = 2 ** 20;

/**
 * Index of a difference, or -1; not by `assertEquals`, which would print it all. Of very many every 61st is checked.
 */
function firstDifference(words: Uint32Array, expected: (i: number) => number): number {
  const step = words.length > 2 ** 26 ? 61 : 1;
  for (let i = words.length - 1; i >= 0; i -= step) if (words[i] !== expected(i)) return i;
  return -1;
}

for (const bytes of [20 * MiB + 4, 64 * MiB, 80 * MiB + 4, 2100 * MiB + 12]) {
  test(
    ...needs(missingGpus(), `${bytes} bytes of ordinary memory are uploaded and downloaded unchanged`),
    async () => {
      using cuda = Cuda.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      using buffer = new DeviceMemoryResource(device).allocate(bytes, { stream });
      using host = new HostMemoryResource().allocate(bytes);
      const words = new Uint32Array(host.bytes().buffer, host.bytes().byteOffset, bytes / 4);
      const onDevice = StridedMemoryView.fromBuffer(buffer, { shape: [bytes / 4], dtype: "uint32" });
      const onHost = StridedMemoryView.fromBuffer(host, { shape: [bytes / 4], dtype: "uint32" });
      // The first smaller copies are made by the driver: see the staging plan.
      const isStaged = canStartThreads() && bytes >= 64 * MiB &&
        planStaging(bytes, navigator.hardwareConcurrency) !== null;
      // A staged copy is done with host memory when it returns; for others the driver promises less.
      const settle = () => isStaged || stream.synchronize();
      if (isStaged) {
        assert(onDevice.explainCopyFrom(onHost).includes("threads"), onDevice.explainCopyFrom(onHost));
      }
      const value = (i: number, round: number) => Math.imul(i + round, 2654435761) >>> 0;
      for (const round of [0, 1]) {
        for (let i = 0; i < words.length; i++) words[i] = value(i, round);
        onDevice.copyFrom(onHost, { stream });
        settle();
        words.fill(0); // the copy is done with host memory
        onHost.copyFrom(onDevice, { stream });
        settle();
        assertEquals(firstDifference(words, (i) => value(i, round)), -1, `round ${round}`);
      }
      if (bytes < 2 ** 30) {
        const reading = onDevice.toTypedArray();
        buffer.fill(0xff, { stream }); // after what is read
        const read = await reading as Uint32Array; // of a view of uint32
        assertEquals(firstDifference(read, (i) => value(i, 1)), -1, "toTypedArray");
      }
      // In stream order.
      buffer.fill(0x11, { stream });
      host.copyFrom(buffer, { stream });
      settle();
      assertEquals(firstDifference(words, () => 0x11111111), -1);
      words.fill(0x22222222);
      buffer.copyFrom(host, { stream });
      settle();
      words.fill(0);
      host.copyFrom(buffer, { stream });
      settle();
      assertEquals(firstDifference(words, () => 0x22222222), -1);
    },
  );
}
