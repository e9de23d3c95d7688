/**
 * Copies between ordinary host memory and a device. Rates are bytes copied, by the host's clock, until the copy is over.
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
import { hostRate, median, type Peer, ratio, row, table } from "./section.ts";

const MiB = 2 ** 20;

/** Bytes: the peer copies as many. */
export const hostSizes: readonly number[] = [1, 4, 16, 24, 64, 256, 1024].map((count) => count * MiB);

/** From so many bytes on the claim is a rate. */
const much = 256 * MiB;
const wanted = 40;

export async function measureHost(cuda: Cuda, peer: Peer): Promise<number> {
  const device = cuda.device(0);
  using stream = device.createStream();
  const largest = Math.max(...hostSizes);
  using buffer = new DeviceMemoryResource(device).allocate(largest, { stream });
  using ordinary = new HostMemoryResource().allocate(largest);
  using pinned = new PinnedMemoryResource(device).allocate(largest);
  for (const memory of [ordinary, pinned]) memory.bytes().fill(1);
  table(
    "Ordinary host memory, GB/s",
    ...["MiB", "", "ours", "torch", "ratio", "torch, pinned", "ours, pinned", "", "how"],
  );
  let failures = 0;
  hostSizes.forEach((bytes, i) => {
    const over = (memory: typeof buffer) => StridedMemoryView.fromBuffer(memory, { shape: [bytes], dtype: "uint8" });
    const [there, here, locked] = [over(buffer), over(ordinary), over(pinned)];
    const rate = (to: StridedMemoryView, from: StridedMemoryView) =>
      hostRate(bytes, () => {
        to.copyFrom(from, { stream });
        stream.synchronize();
      });
    for (const direction of ["HtoD", "DtoH"] as const) {
      const isUp = direction === "HtoD";
      const ours = isUp ? rate(there, here) : rate(here, there);
      const oursPinned = isUp ? rate(there, locked) : rate(locked, there);
      const theirs = peer.host?.[i]?.[isUp ? 0 : 1];
      const theirsPinned = peer.host?.[i]?.[isUp ? 2 : 3];
      const isFast = bytes < much || ours >= wanted;
      const passes = isFast && (theirs === undefined || ours >= 0.9 * theirs);
      if (!passes) failures++;
      const run = { to: 0n, from: 0n, bytes, isPageable: true, peers: null, direction };
      const plan = stagingOf({ ...run, [isUp ? "from" : "to"]: ordinary.ptr }, stream);
      const how = plan === null ? "the driver" : `${plan.threads} threads, chunks of ${plan.chunk / MiB} MiB`;
      const cells = [bytes / MiB, isUp ? "up" : "down", ours.toFixed(1), theirs?.toFixed(1), ratio(ours, theirs)];
      row(...cells, theirsPinned?.toFixed(1), oursPinned.toFixed(1), passes ? "PASS" : "FAIL", how);
    }
  });
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
