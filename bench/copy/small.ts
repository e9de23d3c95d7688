/**
 * Small copies from the host to a device: nanoseconds until a call returns, by the host's clock. The device is
 * synchronized between batches, off the clock.
 *
 * @module
 */
import { type Cuda, HostMemoryResource, PinnedMemoryResource } from "../../mod.ts";
import { checkCuda } from "../../src/driver/driver.ts";
import { Rounds } from "../peer.ts";
import { ratio, row, table, type Torch } from "./section.ts";

const sizes = [64, 4096, 65_536] as const;
const BATCH = 100;
const SAMPLES = 20;
const ROUNDS = 15;

/** Our maximum time as a multiple of the bare driver's copy: ours also retains the memory and tracks it. */
const most = 1.5;

export async function measureSmall(cuda: Cuda, torch: Torch): Promise<number> {
  const device = cuda.device(0);
  using stream = device.createStream();
  const { copy } = cuda.driver;
  table("Small copies to the device, ns a call", "bytes", "from", "ours", "bare driver", "of it", "torch", "ratio", "");
  let failures = 0;
  for (const bytes of sizes) {
    using target = device.memory.allocate(bytes, { stream });
    using ordinary = new HostMemoryResource().allocate(bytes);
    using pinned = new PinnedMemoryResource(device).allocate(bytes);
    const array = new Uint8Array(bytes);
    for (const [name, source, isPinned] of [["ordinary", array, false], ["pinned", pinned, true]] as const) {
      const from = isPinned ? pinned.ptr : ordinary.ptr;
      const [to, size, handle] = [target.ptr, BigInt(bytes), stream.handle];
      const bare = () =>
        checkCuda(cuda.driver, "cuMemcpyHtoDAsync_v2", copy.cuMemcpyHtoDAsync_v2(to, from, size, handle));
      const [ours, floor, theirs] = [new Rounds(), new Rounds(), new Rounds()];
      const time = (run: () => void) => {
        const start = performance.now();
        for (let i = 0; i < BATCH; i++) run();
        const taken = performance.now() - start;
        stream.synchronize();
        return 1e6 * taken / BATCH;
      };
      const one = () => target.copyFrom(source, { stream });
      for (let i = 0; i < 200; i++) time(one);
      for (let round = 0; round < ROUNDS; round++) {
        ours.add(Array.from({ length: SAMPLES }, () => time(one)));
        floor.add(Array.from({ length: SAMPLES }, () => time(bare)));
        theirs.add([await torch("small", { bytes, isPinned }) ?? NaN]);
      }
      const isCompared = Number.isFinite(theirs.best);
      const passes = ours.best <= most * floor.best || ours.best <= theirs.best;
      if (!passes) failures++;
      const cells = [bytes, name, ours.best, floor.best, ratio(ours.best, floor.best)];
      const peer = isCompared ? [theirs.best, ratio(ours.best, theirs.best)] : ["-", "-"];
      row(...cells, ...peer, passes ? "PASS" : "FAIL");
    }
  }
  return failures;
}
