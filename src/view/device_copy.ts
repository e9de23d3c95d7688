/**
 * Copies between any two layouts of which at least one is in memory that a device drives.
 *
 * @module
 */
import { CU_MEMORYTYPE, CUDA_MEMCPY3D_v2 } from "../../bindings/cuda_types.ts";
import type { CudaDevice } from "../cuda/device.ts";
import { checkCuda } from "../cuda/driver.ts";
import type { CudaStream } from "../cuda/stream.ts";
import { NativeArena } from "../ffi/arena.ts";
import type { StridedLayout } from "../layout/mod.ts";
import { DeviceMemoryResource } from "../memory/device_memory_resource.ts";
import { PinnedMemoryResource } from "../memory/driver_memory_resource.ts";
import type { MemoryBuffer } from "../memory/memory_buffer.ts";
import { copyRun, type Run, stagingOf } from "../memory/staging.ts";
import { bytesOf, type Conversion } from "./conversion.ts";
import { kernelFor, type KernelPlan } from "./copy_kernel_cache.ts";
import { type CopyPlan, explainPlan, type Pitched, planCopy } from "./copy_plan.ts";
import { copyProblem } from "./copy_problem.ts";
import { copyHost } from "./host_copy.ts";

/** One side of a copy. */
export interface CopySide {
  readonly buffer: MemoryBuffer;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  readonly offset: number;
  readonly layout: StridedLayout;
}

/** A plan, and where the first word is read and written. */
interface Planned {
  readonly plan: CopyPlan;
  readonly from: bigint;
  readonly to: bigint;
}

/** What it is planned to do, in words. */
export function explainDeviceCopy(
  source: CopySide,
  destination: CopySide,
  stream: CudaStream,
  conversion: Conversion | null,
): string {
  const planned = planFor(source, destination, conversion);
  if (planned !== null) return explainStaging(planned, source, destination, stream) ?? explainPlan(planned.plan);
  if (conversion !== null) return explainParts(source, destination, conversion);
  return source.buffer.isDeviceAccessible
    ? "made dense on the device, copied to pinned memory in one piece, and arranged by the host"
    : "arranged by the host in pinned memory, copied to the device in one piece, and spread there";
}

function explainStaging(
  planned: Planned,
  source: CopySide,
  destination: CopySide,
  stream: CudaStream,
): string | null {
  if (planned.plan.kind !== "contiguous") return null;
  const { bytes } = planned.plan;
  const staging = stagingOf(runOf(planned, bytes, source, destination), stream);
  return staging &&
    `${bytes} bytes by ${staging.threads} threads through pinned memory, in chunks of ${staging.chunk} bytes`;
}

/**
 * Enqueues a copy on a stream. The home streams of both sides are ordered before and after it. Where host memory has to be
 * arranged element by element, the host does that: before it returns, and for a copy to the host after waiting for the
 * stream.
 *
 * @param conversion what becomes of each element; kernels do it, wherever the sides are
 */
export function copyOnDevice(
  source: CopySide,
  destination: CopySide,
  stream: CudaStream,
  conversion: Conversion | null = null,
): void {
  if (source.layout.volume === 0) return;
  const homes = [...new Set([source.buffer.stream, destination.buffer.stream])].filter((home) => home !== null);
  for (const home of homes) stream.wait(home);
  copy(source, destination, stream, conversion);
  for (const home of homes) home.wait(stream);
}

/** As {@linkcode copyOnDevice}, for sides that share memory: by way of a dense copy. */
export function copyThroughDense(
  source: CopySide,
  destination: CopySide,
  stream: CudaStream,
  conversion: Conversion | null = null,
): void {
  using dense = denseLike(source.layout, stream);
  copyOnDevice(source, dense, stream);
  copyOnDevice(dense, destination, stream, conversion);
}

function copy(source: CopySide, destination: CopySide, stream: CudaStream, conversion: Conversion | null = null): void {
  const planned = planFor(source, destination, conversion);
  if (planned !== null) execute(planned, source, destination, stream);
  else if (conversion !== null) convertInParts(source, destination, stream, conversion);
  else if (source.buffer.isDeviceAccessible) toHost(source, destination, stream);
  else toDevice(source, destination, stream);
}

/** Dense memory of the device for the elements of a layout, in the same order. */
interface DenseSide extends CopySide {
  [Symbol.dispose](): void;
}

function denseLike(layout: StridedLayout, stream: CudaStream): DenseSide {
  const dense = layout.toDense("K");
  const buffer = new DeviceMemoryResource(stream.device).allocate(sizeOf(dense), { stream });
  return { buffer, offset: 0, layout: dense, [Symbol.dispose]: () => buffer.close() };
}

/** Whether a kernel can reach the elements of a side, and move each of them in one piece. */
function isKernelReady({ buffer, offset, layout }: CopySide, itemsize: number): boolean {
  return buffer.isDeviceAccessible &&
    (buffer.ptr + BigInt(offset + layout.sliceOffsetInBytes)) % BigInt(itemsize) === 0n;
}

/** Converts on the device where a kernel cannot reach both sides: by way of dense memory there for each that it cannot. */
function convertInParts(source: CopySide, destination: CopySide, stream: CudaStream, conversion: Conversion): void {
  if (!isKernelReady(source, bytesOf(conversion.from))) {
    using dense = denseLike(source.layout, stream);
    copy(source, dense, stream);
    return copy(dense, destination, stream, conversion);
  }
  using dense = denseLike(destination.layout, stream);
  copy(source, dense, stream, conversion);
  copy(dense, destination, stream);
}

function explainParts(source: CopySide, destination: CopySide, { from, to }: Conversion): string {
  const before = isKernelReady(source, bytesOf(from)) ? "" : "brought to dense memory of the device, ";
  const after = isKernelReady(destination, bytesOf(to)) ? "" : ", and copied from there";
  return `${before}converted from ${from.name} to ${to.name} on the device${after}`;
}

/** A plan, and all that it depends on besides the destination's layout. */
interface Decided {
  readonly source: StridedLayout;
  /** The lowest four bits of both addresses. */
  readonly alignment: bigint;
  readonly canLaunch: boolean;
  readonly conversion: Conversion | null;
  /** Null if the host has to take part. */
  readonly plan: CopyPlan | null;
  readonly fromOffset: bigint;
  readonly toOffset: bigint;
}

/** The last plan for each destination: copies are often repeated, and deciding costs as much as a small one. */
const decided = new WeakMap<StridedLayout, Decided>();

/** The plan, or null if the host has to take part. */
function planFor(source: CopySide, destination: CopySide, conversion: Conversion | null): Planned | null {
  const isReady = conversion === null ||
    (isKernelReady(source, bytesOf(conversion.from)) && isKernelReady(destination, bytesOf(conversion.to)));
  if (!isReady) return null;
  const start = ({ buffer, offset }: CopySide) => buffer.ptr + BigInt(offset);
  const [from, to] = [start(source), start(destination)];
  const alignment = (from & 15n) << 4n | (to & 15n);
  const canLaunch = source.buffer.isDeviceAccessible && destination.buffer.isDeviceAccessible;
  let known = decided.get(destination.layout);
  if (
    known?.source !== source.layout || known.alignment !== alignment || known.canLaunch !== canLaunch ||
    known.conversion?.from !== conversion?.from || known.conversion?.to !== conversion?.to
  ) {
    const problem = copyProblem(source.layout, destination.layout, { from, to }, conversion);
    known = {
      source: source.layout,
      alignment,
      canLaunch,
      conversion,
      plan: planCopy(problem, canLaunch),
      fromOffset: BigInt(problem.fromOffset),
      toOffset: BigInt(problem.toOffset),
    };
    decided.set(destination.layout, known);
  }
  const { plan, fromOffset, toOffset } = known;
  return plan && { plan, from: from + fromOffset, to: to + toOffset };
}

function execute({ plan, from, to }: Planned, source: CopySide, destination: CopySide, stream: CudaStream): void {
  switch (plan.kind) {
    case "nothing":
      return;
    case "contiguous":
      return copyRun(runOf({ plan, from, to }, plan.bytes, source, destination), stream);
    case "pitched":
      return enqueueBox(
        plan.box,
        { isHost: isHost(source), at: from },
        { isHost: isHost(destination), at: to },
        stream,
      );
    default:
      return launch(plan, from, to, stream);
  }
}

function runOf({ from, to }: Planned, bytes: number, source: CopySide, destination: CopySide): Run {
  const direction = `${isHost(source) ? "H" : "D"}to${isHost(destination) ? "H" : "D"}` as const;
  return {
    to,
    from,
    bytes,
    direction,
    isPageable: source.buffer.kind === "host" || destination.buffer.kind === "host",
  };
}

function launch(plan: KernelPlan, from: bigint, to: bigint, stream: CudaStream): void {
  const { kernel, grid, block } = kernelFor(stream.device, plan);
  kernel.launch(stream, grid, block, [to, from]);
}

function isHost({ buffer }: CopySide): boolean {
  return buffer.kind === "host" || buffer.kind === "pinned";
}

interface Corner {
  readonly isHost: boolean;
  readonly at: bigint;
}

/** Boxes of one slice are rectangles: the driver's three-dimensional copy does both. */
function enqueueBox(box: Pitched, source: Corner, destination: Corner, stream: CudaStream): void {
  const { device } = stream;
  const { driver } = device;
  using arena = new NativeArena();
  const struct = arena.struct(CUDA_MEMCPY3D_v2);
  struct.srcMemoryType = source.isHost ? CU_MEMORYTYPE.HOST : CU_MEMORYTYPE.DEVICE;
  struct[source.isHost ? "srcHost" : "srcDevice"] = source.at;
  struct.srcPitch = box.fromPitch;
  struct.srcHeight = box.fromHeight;
  struct.dstMemoryType = destination.isHost ? CU_MEMORYTYPE.HOST : CU_MEMORYTYPE.DEVICE;
  struct[destination.isHost ? "dstHost" : "dstDevice"] = destination.at;
  struct.dstPitch = box.toPitch;
  struct.dstHeight = box.toHeight;
  struct.WidthInBytes = box.width;
  struct.Height = box.height;
  struct.Depth = box.depth;
  const enqueue = () => driver.copyPitched.cuMemcpy3DAsync_v2(struct.$address, stream.handle);
  checkCuda(driver, "cuMemcpy3DAsync_v2", device.within(enqueue));
}

/** From a host array that the driver cannot take as it lies: the host arranges it as the destination lies. */
function toDevice(source: CopySide, destination: CopySide, stream: CudaStream): void {
  const layout = destination.layout.toDense("K");
  using buffer = pinned(stream.device, layout, stream);
  const staging = { buffer, offset: 0, layout };
  copyHost(hostSide(source), hostSide(staging));
  if (destination.layout.isDense) copy(staging, destination, stream);
  else through(staging, destination, layout, stream);
}

/** To a host array that the driver cannot fill as it lies. */
function toHost(source: CopySide, destination: CopySide, stream: CudaStream): void {
  const layout = source.layout.toDense("K");
  using buffer = pinned(stream.device, layout, stream);
  const staging = { buffer, offset: 0, layout };
  if (source.layout.isDense) copy(source, staging, stream);
  else through(source, staging, layout, stream);
  stream.synchronize();
  copyHost(hostSide(staging), hostSide(destination));
}

/** By way of dense memory of the device: a kernel could reach over to the host's, but one copy in one piece is faster. */
function through(source: CopySide, destination: CopySide, layout: StridedLayout, stream: CudaStream): void {
  using dense = denseLike(layout, stream);
  copy(source, dense, stream);
  copy(dense, destination, stream);
}

function pinned(device: CudaDevice, layout: StridedLayout, stream: CudaStream): MemoryBuffer {
  return new PinnedMemoryResource(device).allocate(sizeOf(layout), { stream });
}

function sizeOf(layout: StridedLayout): number {
  return Math.ceil(layout.volume * layout.itemsize);
}

function hostSide({ buffer, offset, layout }: CopySide): { bytes: Uint8Array; offset: number; layout: StridedLayout } {
  return { bytes: buffer.bytes(), offset, layout };
}
