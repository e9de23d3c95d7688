/**
 * Copies in one piece between all GPUs of the machine: every pair, one after the other and all at once.
 *
 * @module
 */
import {
  type Cuda,
  type CudaDevice,
  type CudaStream,
  DeviceMemoryResource,
  type MemoryBuffer,
  StridedMemoryView,
} from "../../mod.ts";
import { enqueueCopy, enqueuePeerCopy } from "../../src/device/mod.ts";
import { hostRate, ratio, row, table, type Torch } from "./section.ts";

const bytes = 256 << 20;
const repeats = 10;

interface Pair {
  readonly from: CudaDevice;
  readonly to: CudaDevice;
  readonly stream: CudaStream;
  readonly source: MemoryBuffer;
  readonly target: MemoryBuffer;
  readonly copy: () => void;
}

/** All pairs, with memory of their own for each direction, of pools of which nothing was said. */
function pairsOf({ devices }: Cuda, pools: readonly DeviceMemoryResource[], stack: DisposableStack): Pair[] {
  const allocate = (device: CudaDevice, stream: CudaStream): MemoryBuffer => {
    const pool = pools[device.ordinal];
    if (pool === undefined) throw new RangeError(`No device ${device.ordinal}`);
    return stack.use(pool.allocate(bytes, { stream }));
  };
  return devices.flatMap((from) =>
    devices.filter((to) => to !== from).map((to) => {
      const stream = stack.use(from.createStream());
      const home = stack.use(to.createStream());
      const [source, target] = [allocate(from, stream), allocate(to, home)];
      source.fill(3, { stream });
      const layout = { shape: [bytes / 4], dtype: "float32" } as const;
      const view = StridedMemoryView.fromBuffer(source, layout);
      const into = StridedMemoryView.fromBuffer(target, layout);
      return { from, to, stream, source, target, copy: () => into.copyFrom(view, { stream }) };
    })
  );
}

/** @returns how many pairs are slower than what is claimed */
export async function measureMatrix(cuda: Cuda, askTorch: Torch): Promise<number> {
  if (cuda.devices.length < 2) {
    console.log("\nBetween all devices: not measured, there is one device here.");
    return 0;
  }
  const wait = () => {
    for (const device of cuda.devices) device.synchronize();
  };
  /** Of several pairs at once, each so often. */
  const rate = (pairs: readonly Pair[], enqueue: (pair: Pair) => void) =>
    hostRate(pairs.length * repeats * bytes, () => {
      for (let i = 0; i < repeats; i++) for (const pair of pairs) enqueue(pair);
      wait();
    });
  const bare = ({ stream, target, to, source, from }: Pair) =>
    enqueuePeerCopy(stream, target.ptr, to, source.ptr, from, bytes);
  const alike = ({ stream, target, source }: Pair) => enqueueCopy(stream, target.ptr, source.ptr, bytes, "DtoD");
  using stack = new DisposableStack();
  const pools = cuda.devices.map((device) => stack.use(new DeviceMemoryResource(device, {})));
  const pairs = pairsOf(cuda, pools, stack);
  wait();
  let failures = 0;
  table(
    "Every pair of devices, 256 MiB, GB/s",
    "from",
    "to",
    "ours",
    "peer copy",
    "of it",
    "torch",
    "ratio",
    "",
    "as one device's",
  );
  const report = (from: string, to: string, some: readonly Pair[], torch: number | undefined) => {
    for (const pair of some) pair.copy(); // takes access
    const ours = rate(some, (pair) => pair.copy());
    const piece = rate(some, bare);
    const passes = ours >= 0.95 * piece && (torch === undefined || ours >= 0.97 * torch);
    if (!passes) failures++;
    row(from, to, ours, piece, ratio(ours, piece), torch, ratio(ours, torch), passes ? "PASS" : "FAIL");
  };
  for (const pair of pairs) {
    const [from, to] = [pair.from.ordinal, pair.to.ordinal];
    report(`${from}`, `${to}`, [pair], await askTorch("matrix", { bytes, pairs: [[from, to]] }));
  }
  const everyone = pairs.map(({ from, to }) => [from.ordinal, to.ordinal]);
  report("all", "at once", pairs, await askTorch("matrix", { bytes, pairs: everyone }));
  // What torch does: with access to each other's memory, which some of these streams had not, as copies of one device.
  for (const pool of pools) pool.peerAccessibleBy = cuda.devices;
  console.log(`\nAll at once, with access to all, as copies of one device: ${rate(pairs, alike).toFixed(0)} GB/s.`);
  return failures;
}
