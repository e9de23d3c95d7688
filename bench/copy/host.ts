/**
 * Copies between pageable host memory and a device. Rates are bytes copied, by the host's clock, until the copy
 * completes.
 *
 * @module
 */
import {
  type Cuda,
  DeviceMemoryResource,
  HostMemoryResource,
  PinnedMemoryResource,
  StridedMemoryView,
} from "../../mod.ts";
import { stagingOf } from "../../src/memory/staging.ts";
import { median } from "../peer.ts";
import { hostRate, ratio, row, table, type Torch } from "./section.ts";

const MiB = 2 ** 20;

/** Sizes in bytes; the peer copies the same. */
const hostSizes: readonly number[] = [1, 2, 4, 8, 16, 24, 32, 64, 256, 1024].map((count) => count * MiB);

/** From this many bytes on, the claim is an absolute rate. */
const much = 256 * MiB;
const wanted = 40;

/** Rounds in which ours and torch's alternate; the fastest counts: such hosts are slower for seconds at a time. */
const rounds = 5;

export async function measureHost(cuda: Cuda, torch: Torch): Promise<number> {
  const device = cuda.device(0);
  using stream = device.createStream();
  const largest = Math.max(...hostSizes);
  using buffer = new DeviceMemoryResource(device).allocate(largest, { stream });
  using ordinary = new HostMemoryResource().allocate(largest);
  using pinned = new PinnedMemoryResource(device).allocate(largest);
  for (const memory of [ordinary, pinned]) memory.bytes().fill(1);
  buffer.copyFrom(ordinary, { stream }); // from now on smaller copies have threads and pinned memory, too
  stream.synchronize();
  table(
    "Ordinary host memory, GB/s",
    ...["MiB", "", "ours", "torch", "ratio", "torch, pinned", "ours, pinned", "", "how"],
  );
  let failures = 0;
  for (const bytes of hostSizes) {
    const over = (memory: typeof buffer) => StridedMemoryView.fromBuffer(memory, { shape: [bytes], dtype: "uint8" });
    const [there, here, locked] = [over(buffer), over(ordinary), over(pinned)];
    const rate = (to: StridedMemoryView, from: StridedMemoryView) =>
      hostRate(bytes, () => {
        to.copyFrom(from, { stream });
        stream.synchronize();
      });
    for (const direction of ["HtoD", "DtoH"] as const) {
      const isUp = direction === "HtoD";
      const [ours, theirs] = await best(
        () => isUp ? rate(there, here) : rate(here, there),
        () => torch("host", { bytes, isUp, isPinned: false }),
      );
      const [oursPinned, theirsPinned] = await best(
        () => isUp ? rate(there, locked) : rate(locked, there),
        () => torch("host", { bytes, isUp, isPinned: true }),
      );
      const isFast = bytes < much || ours >= wanted;
      const run = { to: 0n, from: 0n, bytes, isPageable: true, peers: null, direction };
      const plan = stagingOf({ ...run, [isUp ? "from" : "to"]: ordinary.ptr }, stream);
      const how = plan === null ? "the driver" : `${plan.threads} threads, chunks of ${plan.chunk / MiB} MiB`;
      // Where the driver copies, it does the same for both: any difference is noise.
      const passes = isFast && (theirs === undefined || ours >= (plan === null ? 0.9 : 1) * theirs);
      if (!passes) failures++;
      const cells = [bytes / MiB, isUp ? "up" : "down", ours.toFixed(1), theirs?.toFixed(1), ratio(ours, theirs)];
      row(...cells, theirsPinned?.toFixed(1), oursPinned.toFixed(1), passes ? "PASS" : "FAIL", how);
    }
  }
  for (const bytes of hostSizes) {
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [bytes / 4], dtype: "float32" });
    const times: number[] = [];
    for (let i = 0; i < 4; i++) {
      const start = performance.now();
      await view.toTypedArray();
      times.push(performance.now() - start);
    }
    const ours = (bytes / 1e6 / median(times.slice(1))).toFixed(1);
    row(bytes / MiB, "down", ours, "", "", "", "", "", "toTypedArray, into memory that is new");
  }
  return failures;
}

async function best(
  ours: () => number,
  theirs: () => Promise<number | undefined>,
): Promise<[ours: number, theirs: number | undefined]> {
  let most: [number, number | undefined] = [0, undefined];
  for (let round = 0; round < rounds; round++) {
    const [mine, other] = [ours(), await theirs()];
    most = [Math.max(most[0], mine), other === undefined ? other : Math.max(most[1] ?? 0, other)];
  }
  return most;
}
