/**
 * Contiguous copies between all GPUs of the machine: pair by pair; all at once and unordered; and in rounds, in each of
 * which each device sends to one and receives from one.
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

/** Minimum rates of copies, as fractions of the driver's contiguous copy and of torch's. */
interface Least {
  readonly piece: number;
  readonly torch: number;
}

const one: Least = { piece: 0.95, torch: 0.97 };

interface Pair {
  readonly from: CudaDevice;
  readonly to: CudaDevice;
  readonly stream: CudaStream;
  readonly source: MemoryBuffer;
  readonly target: MemoryBuffer;
  readonly copy: () => void;
}

/** All pairs, each direction with its own memory, from pools with default access. */
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

/** All pairs, ordered so that each device sends to the next, then to the one after that. */
function inRounds(pairs: readonly Pair[], devices: number): Pair[] {
  const round = ({ from, to }: Pair) => (to.ordinal - from.ordinal + devices) % devices;
  return pairs.toSorted((one, other) => round(one) - round(other));
}

/** @returns how many pairs are slower than claimed */
export async function measureMatrix(cuda: Cuda, askTorch: Torch): Promise<number> {
  if (cuda.devices.length < 2) {
    console.log("\nBetween all devices: not measured, there is one device here.");
    return 0;
  }
  const wait = () => {
    for (const device of cuda.devices) device.synchronize();
  };
  /** The rate of several pairs at once, with `repeats` copies each. */
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
  const report = (from: string, to: string, some: readonly Pair[], torch: number | undefined, least: Least) => {
    for (const pair of some) pair.copy(); // takes access
    const ours = rate(some, (pair) => pair.copy());
    const piece = rate(some, bare);
    const passes = ours >= least.piece * piece && (torch === undefined || ours >= least.torch * torch);
    if (!passes) failures++;
    row(
      from,
      to,
      ours,
      piece,
      ratio(ours, piece),
      torch,
      ratio(ours, torch),
      passes ? "PASS" : "FAIL",
      rate(some, alike),
    );
  };
  const ask = (some: readonly Pair[]) =>
    askTorch("matrix", { bytes, pairs: some.map(({ from, to }) => [from.ordinal, to.ordinal]) });
  // torch's copies into one device always wait for each other. Unordered copies are held to the driver's rate alone: a
  // device that three others fill at once is slower.
  for (const pair of pairs) report(`${pair.from.ordinal}`, `${pair.to.ordinal}`, [pair], await ask([pair]), one);
  report("all", "at once", pairs, await ask(pairs), { ...one, torch: 0 });
  // Where nothing else delays the copies, it shows that each is ordered after the work of both home streams, and they
  // after it.
  const rounds = inRounds(pairs, cuda.devices.length);
  report("all", "in rounds", rounds, await ask(rounds), { piece: 0.9, torch: 0.9 });
  return failures;
}
