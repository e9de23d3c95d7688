/**
 * Copies from one device to another: by default, and where the user has denied the devices access to each other's
 * memory. Rates are bytes copied.
 *
 * @module
 */
import {
  type Cuda,
  type CudaDevice,
  type CudaStream,
  DeviceMemoryResource,
  slice,
  StridedLayout,
  StridedMemoryView,
} from "../../mod.ts";
import { kernelFor } from "../../src/copy/copy_kernel_cache.ts";
import { planDeviceCopy } from "../../src/copy/device_plan.ts";
import { coalesce } from "../../src/copy/coalesced_copy.ts";
import { hostRate, ratio, row, table, type Torch } from "./section.ts";
import { enqueueCopy, enqueuePeerCopy } from "../../src/device/mod.ts";

/** A source and a destination: dense, dense and transposed, or every other column of a larger one. */
interface Case {
  readonly name: string;
  readonly from: "dense" | "turned" | "stepped";
  readonly to: "dense" | "stepped";
}

/** The copies; the peer makes the same ones. */
const deviceCases: readonly Case[] = [
  { name: "as it lies", from: "dense", to: "dense" },
  { name: "transposed", from: "turned", to: "dense" },
  { name: "every other column to dense", from: "stepped", to: "dense" },
  { name: "dense to every other column", from: "dense", to: "stepped" },
];

const shape = [8192, 8192];
const dtype = "float32";
const bytes = 4 * shape.reduce((product, extent) => product * extent, 1);

function layoutOf(kind: Case["from"]): StridedLayout {
  if (kind === "turned") return StridedLayout.dense(shape.toReversed(), 4).permuted([1, 0]);
  if (kind === "dense") return StridedLayout.dense(shape, 4);
  return StridedLayout.dense([8192, 2 * 8192], 4).sliced("...", slice(null, null, 2));
}

const repeats = 10;

/** The rate of several copies in sequence, until both devices are done. */
function rate(cuda: Cuda, enqueue: () => void): number {
  return hostRate(repeats * bytes, () => {
    for (let i = 0; i < repeats; i++) enqueue();
    for (const device of cuda.devices) device.synchronize();
  });
}

export async function measureDevices(cuda: Cuda, askTorch: Torch): Promise<number> {
  const [here, there] = cuda.devices;
  if (here === undefined || there === undefined) {
    console.log("\nBetween devices: not measured, there is one device here.");
    return 0;
  }
  table("From one device to another, GB/s", "copy", "", "ours", "peer copy", "of it", "torch", "ratio", "", "how");
  let failures = 0;
  using sending = here.createStream();
  using receiving = there.createStream();
  for (const one of deviceCases) {
    using mine = new DeviceMemoryResource(here, {});
    using theirs = new DeviceMemoryResource(there, {});
    const [from, to] = [layoutOf(one.from), layoutOf(one.to)];
    using source = mine.allocate(2 * bytes, { stream: sending });
    using destination = theirs.allocate(2 * bytes, { stream: receiving });
    source.fill(3, { stream: sending });
    const view = StridedMemoryView.fromBuffer(source, { shape, strides: from.strides, dtype });
    const into = StridedMemoryView.fromBuffer(destination, { shape, strides: to.strides, dtype });
    for (const device of cuda.devices) device.synchronize();
    const torch = await askTorch("devices", one);
    const pieceOf = () => rate(cuda, () => enqueuePeerCopy(sending, destination.ptr, there, source.ptr, here, bytes));
    into.copyFrom(view, { stream: sending }); // enables access
    let piece = pieceOf();
    const report = (what: string, ours: number, how: string, isClaim: boolean) => {
      const isAlike = one.from === "dense" && one.to === "dense";
      const passes = (!isAlike || ours >= 0.95 * piece) && (torch === undefined || ours >= 0.97 * torch);
      if (isClaim && !passes) failures++;
      const percent = `${(100 * ours / piece).toFixed(0)}%`;
      row(
        one.name,
        what,
        ours,
        piece,
        percent,
        torch,
        ratio(ours, torch),
        !isClaim ? "" : passes ? "PASS" : "FAIL",
        how,
      );
    };
    const copies = (what: string, isClaim: boolean) => {
      for (const [name, stream] of [["source", sending], ["destination", receiving]] as const) {
        const ours = rate(cuda, () => into.copyFrom(view, { stream }));
        const how = into.explainCopyFrom(view, { stream });
        report(`${what}, stream of the ${name}`, ours, how, isClaim && name === "destination");
      }
    };
    copies("as it comes", true);
    mine.peerAccessibleBy = [there];
    theirs.peerAccessibleBy = [here];
    copies("access to both", false);
    if (one.from === one.to) {
      const asOne = () => enqueueCopy(sending, destination.ptr, source.ptr, bytes, "DtoD");
      report("access, as a copy of one device", rate(cuda, asOne), "", false);
    }
    if (one.from !== one.to) {
      for (const [name, device, stream] of [["source", here, sending], ["destination", there, receiving]] as const) {
        const launch = kernelOf(view, into, device, stream);
        report(`a kernel of the ${name}`, rate(cuda, launch), "", false);
      }
    }
    mine.peerAccessibleBy = [];
    theirs.peerAccessibleBy = [];
    piece = pieceOf();
    copies("access withheld", false);
  }
  return failures;
}

/** The kernel of a copy, on a given device. */
function kernelOf(from: StridedMemoryView, to: StridedMemoryView, device: CudaDevice, stream: CudaStream): () => void {
  const plan = planDeviceCopy(coalesce(from.layout, to.layout, { from: from.ptr, to: to.ptr }), true);
  if (plan?.kind !== "strided" && plan?.kind !== "tiled") throw new TypeError("Expected a copy that needs a kernel");
  const { kernel, grid, block } = kernelFor(device, plan);
  return () => kernel.launch(stream, grid, block, [to.ptr, from.ptr]);
}
