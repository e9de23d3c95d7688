/**
 * Copies between any two layouts, at least one of which is in memory that a device drives.
 *
 * @module
 */
import { captureOf, type CudaDevice, type CudaStream } from "../device/mod.ts";
import { StridedLayout } from "../layout/mod.ts";
import { copyRun, type MemoryBuffer, PinnedMemoryResource, planAccess, stagingOf, takeAccess } from "../memory/mod.ts";
import { byteCount } from "./array_parts.ts";
import { bytesOf, type Conversion } from "./conversion.ts";
import { kernelFor, type KernelPlan } from "./copy_kernel_cache.ts";
import { explainPlan, needsKernel } from "./device_plan.ts";
import {
  accessOptions,
  type CopyOperand,
  devicesBetween,
  enqueueOn,
  isHost,
  outOfReach,
  type Reach,
  temporary,
} from "./copy_operand.ts";
import { hasAccess, hostWaitsForCopy, noteElementAccess, orderStreams } from "../order/mod.ts";
import { copyHost } from "./host_copy.ts";
import { copyPitched } from "./pitched_copy.ts";
import { asRun, devicePlanFor, isKernelReady, peersOf, type Planned } from "./device_plan_cache.ts";

/** Describes the planned copy. */
export function explainDeviceCopy(
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
  conversion: Conversion | null,
): string {
  const access = planAccess(accessOptions(source, destination));
  const reaches: Reach = (device, memory) =>
    hasAccess(device, memory) ||
    (access !== null && access.buffer.pool !== null && access.buffer === memory && access.peer === device);
  const planned = devicePlanFor(source, destination, stream, conversion, reaches);
  if (planned !== null) return explainPlanned(planned, source, destination, stream);
  if (devicesBetween(source, destination) !== null) return explainBetween(source, destination, conversion);
  if (conversion !== null) return explainParts(source, destination, conversion);
  return source.buffer.isDeviceAccessible
    ? "made dense on the device, copied to pinned memory in one piece, and arranged by the host"
    : "arranged by the host in pinned memory, copied to the device in one piece, and spread there";
}

function explainPlanned(planned: Planned, source: CopyOperand, destination: CopyOperand, stream: CudaStream): string {
  const { plan, device } = planned;
  const text = explainPlan(plan);
  if (needsKernel(plan)) {
    return devicesBetween(source, destination) === null ? text : `${text}, on ${device}`;
  }
  if (plan.kind !== "contiguous") return text;
  const staging = stagingOf(asRun(planned, plan.bytes, source, destination, stream), stream);
  if (staging === null) return text;
  return `${plan.bytes} bytes by ${staging.threads} threads through pinned memory, in chunks of ${staging.chunk} bytes`;
}

// law copy/copyOnDevice: copy/device_copy, view/strided_memory_view, copy/home_order, order/pageable_in_use,
//   sim/behaviours
/**
 * Enqueues a copy on a stream. The home streams of both sides are ordered before and after it. If host memory must be
 * arranged element by element, the host does so before this returns, and for a copy to the host after waiting for the
 * stream.
 *
 * @param conversion how each element is converted; kernels convert, wherever the sides are
 */
export function copyOnDevice(
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
  conversion: Conversion | null = null,
): void {
  if (source.layout.volume === 0) return;
  const home = source.buffer.stream;
  const other = destination.buffer.stream === home ? null : destination.buffer.stream;
  orderStreams(home, stream);
  orderStreams(other, stream);
  copy(source, destination, stream, conversion);
  orderStreams(stream, home);
  orderStreams(stream, other);
  source.buffer.pinUntilPassed(stream);
  destination.buffer.pinUntilPassed(stream);
}

/** As {@linkcode copyOnDevice}, for sides that share memory: through a dense copy. */
export function copyThroughDense(
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
  conversion: Conversion | null = null,
): void {
  using dense = temporary(source.layout.toDense("K"), stream);
  copyOnDevice(source, dense, stream);
  copyOnDevice(dense, destination, stream, conversion);
}

// law copy/copy: copy/peer_copy
function copy(
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
  conversion: Conversion | null = null,
): void {
  const home = outOfReach(source, destination, stream);
  if (home !== null) return enqueueOn(home, stream, (own) => copy(source, destination, own, conversion));
  const ways = accessOptions(source, destination);
  if (ways.length > 0) takeAccess(ways, byteCount(destination));
  const planned = devicePlanFor(source, destination, stream, conversion);
  if (planned !== null) return execute(planned, source, destination, stream);
  const between = devicesBetween(source, destination);
  if (between !== null) copyBetween(source, destination, stream, conversion, between);
  else if (conversion !== null) convertInParts(source, destination, stream, conversion);
  else copyArranged(source, destination, stream);
}

// law copy/copyArranged: order/pageable_in_use, sim/behaviours
/**
 * Copies where the host must arrange elements one by one: it does so now, so a graph could not repeat it at each
 * launch.
 */
function copyArranged(source: CopyOperand, destination: CopyOperand, stream: CudaStream): void {
  if (captureOf(stream) !== null) {
    throw new TypeError(
      "Cannot capture a copy in which the host has to arrange elements: copy them in one piece to or from the " +
        "device, or use page-locked memory, which the device can access directly",
    );
  }
  if (source.buffer.isDeviceAccessible) toHost(source, destination, stream);
  else toDevice(source, destination, stream);
}

function execute(planned: Planned, source: CopyOperand, destination: CopyOperand, stream: CudaStream): void {
  const { plan, from, to, device } = planned;
  switch (plan.kind) {
    case "nothing":
      return;
    case "contiguous":
      return copyRun(asRun(planned, plan.bytes, source, destination, stream), stream);
    case "pitched": {
      const [here, there] = [{ isHost: isHost(source), at: from }, { isHost: isHost(destination), at: to }];
      return copyPitched(plan.box, here, there, stream, peersOf(source, destination, stream));
    }
    case "packed":
      return enqueueOn(device, stream, (own) => {
        for (const part of plan.parts) {
          launch(part, own, to + BigInt(part.toOffset), from + BigInt(part.fromOffset));
        }
      });
    default:
      return enqueueOn(device, stream, (own) => launch(plan, own, to, from));
  }
}

function launch(plan: KernelPlan, stream: CudaStream, to: bigint, from: bigint): void {
  const { kernel, grid, block } = kernelFor(stream.device, plan);
  kernel.launch(stream, grid, block, [to, from]);
}

// law copy/copyBetween: copy/peer_copy, copy/packed_copy
/**
 * Copies between two devices that cannot use each other's memory, and whose layouts differ: gathered on the source
 * device in the destination's order, sent in one piece, and scattered there if necessary. Elements are converted before
 * they are sent if that makes them smaller.
 */
function copyBetween(
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
  conversion: Conversion | null,
  { from, to }: { readonly from: CudaDevice; readonly to: CudaDevice },
): void {
  enqueueOn(from, stream, (sending) => {
    if (!isGathered(source, conversion)) {
      const layout = gatheredLayout(source, destination, conversion);
      using gathered = temporary(layout, sending);
      copy(source, gathered, sending, shrinks(conversion) ? conversion : null);
      return copy(gathered, destination, sending, shrinks(conversion) ? null : conversion);
    }
    enqueueOn(to, sending, (receiving) => {
      using landed = temporary(source.layout.toDense("K"), receiving);
      orderStreams(receiving, sending); // the memory is allocated by then
      copyAlike(source, landed, sending);
      orderStreams(sending, receiving);
      copy(landed, destination, receiving, conversion);
    });
  });
}

/**
 * Copies to memory of our own with the same dense layout. Packed elements are copied with the rest of their last byte,
 * which is allowed for this copy, but for no other destination.
 */
function copyAlike(source: CopyOperand, destination: CopyOperand, stream: CudaStream): void {
  copy(inWholeBytes(source), inWholeBytes(destination), stream);
}

function inWholeBytes(side: CopyOperand): CopyOperand {
  if (side.layout.itemsize >= 1) return side;
  return { buffer: side.buffer, offset: side.offset, layout: StridedLayout.dense([byteCount(side)], 1) };
}

function shrinks(conversion: Conversion | null): boolean {
  return conversion !== null && bytesOf(conversion.to) <= bytesOf(conversion.from);
}

function isGathered({ layout }: CopyOperand, conversion: Conversion | null): boolean {
  return layout.isDense && !shrinks(conversion);
}

/** A dense layout in the order of the destination. */
function gatheredLayout(source: CopyOperand, destination: CopyOperand, conversion: Conversion | null): StridedLayout {
  const dense = destination.layout.toDense("K");
  const { itemsize } = (shrinks(conversion) ? destination : source).layout;
  return new StridedLayout(dense.shape, dense.strides, itemsize);
}

function explainBetween(source: CopyOperand, destination: CopyOperand, conversion: Conversion | null): string {
  const before = isGathered(source, conversion) ? "" : "gathered by a kernel, ";
  const { isDense, volume, itemsize } = destination.layout;
  const fillsBytes = Number.isInteger(volume * itemsize);
  const isSpread = isGathered(source, conversion) || !isDense || !fillsBytes ||
    (conversion !== null && !shrinks(conversion));
  return `${before}sent to the other device in one piece${isSpread ? ", and spread there by a kernel" : ""}`;
}

/**
 * Converts on the device if a kernel cannot reach both sides: through dense memory there for each side that it cannot.
 */
function convertInParts(
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
  conversion: Conversion,
): void {
  if (!isKernelReady(source, bytesOf(conversion.from))) {
    using dense = temporary(source.layout.toDense("K"), stream);
    copy(source, dense, stream);
    return copy(dense, destination, stream, conversion);
  }
  using dense = temporary(destination.layout.toDense("K"), stream);
  copy(source, dense, stream, conversion);
  copy(dense, destination, stream);
}

function explainParts(source: CopyOperand, destination: CopyOperand, { from, to }: Conversion): string {
  const before = isKernelReady(source, bytesOf(from)) ? "" : "brought to dense memory of the device, ";
  const after = isKernelReady(destination, bytesOf(to)) ? "" : ", and copied from there";
  return `${before}converted from ${from.name} to ${to.name} on the device${after}`;
}

// law copy/toDevice: checker/copies
/**
 * Copies from a host array whose layout the driver cannot read: the host arranges it as in the destination. A kernel
 * could access the host's memory directly, but one copy in one piece is faster.
 */
function toDevice(source: CopyOperand, destination: CopyOperand, stream: CudaStream): void {
  const layout = destination.layout.toDense("K");
  using buffer = pinned(stream.device, layout, stream);
  const staging = { buffer, offset: 0, layout };
  noteElementAccess(source, false, "view.copyFrom()");
  copyHost(hostSide(source), hostSide(staging));
  if (destination.layout.isDense) return copy(staging, destination, stream);
  using dense = temporary(layout, stream);
  copyAlike(staging, dense, stream);
  copy(dense, destination, stream);
}

// law copy/toHost: checker/copies, copy/device_copy, view/strided_memory_view, copy/home_order
/** Copies to a host array whose layout the driver cannot write. */
function toHost(source: CopyOperand, destination: CopyOperand, stream: CudaStream): void {
  const layout = source.layout.toDense("K");
  using buffer = pinned(stream.device, layout, stream);
  const staging = { buffer, offset: 0, layout };
  if (source.layout.isDense) copyAlike(source, staging, stream);
  else {
    using dense = temporary(layout, stream);
    copy(source, dense, stream);
    copyAlike(dense, staging, stream);
  }
  hostWaitsForCopy(stream);
  noteElementAccess(destination, true, "view.copyFrom()");
  copyHost(hostSide(staging), hostSide(destination));
}

function pinned(device: CudaDevice, layout: StridedLayout, stream: CudaStream): MemoryBuffer {
  return new PinnedMemoryResource(device).allocate(byteCount({ layout }), { stream });
}

function hostSide(
  { buffer, offset, layout }: CopyOperand,
): { bytes: Uint8Array<ArrayBuffer>; offset: number; layout: StridedLayout } {
  return { bytes: buffer.bytes(), offset, layout };
}
