/**
 * Plans for copies between actual memory: the plan, the addresses of the first words, and the device that carries it
 * out.
 *
 * @module
 */
import type { CudaDevice, CudaStream } from "../device/mod.ts";
import type { StridedLayout } from "../layout/mod.ts";
import type { Run } from "../memory/mod.ts";
import { bytesOf, type Conversion } from "./conversion.ts";
import { type CopyPlan, needsKernel, planDeviceCopy } from "./device_plan.ts";
import { coalesce, type CopyAlignment, packedProblem } from "./coalesced_copy.ts";
import { canReachBoth, type CopyOperand, devicesBetween, isHost, kernelDevice, type Reach } from "./copy_operand.ts";
import { planPacked } from "./packed_plan.ts";
import { hasAccess } from "../order/mod.ts";

/** A plan, and the addresses where the first word is read and written. */
export interface Planned {
  readonly plan: CopyPlan;
  readonly from: bigint;
  readonly to: bigint;
  /** The device that runs the kernel, if the plan has one. */
  readonly device: CudaDevice;
}

/** A plan, and everything that it depends on besides the destination's layout. */
interface Decided {
  readonly source: StridedLayout;
  /** The lowest four bits of both addresses. */
  readonly alignment: bigint;
  readonly canLaunch: boolean;
  readonly conversion: Conversion | null;
  /** Null if the host must take part. */
  readonly plan: CopyPlan | null;
  readonly fromOffset: bigint;
  readonly toOffset: bigint;
}

/** The last plan for each destination: copies are often repeated, and planning costs as much as a small copy. */
const decided = new WeakMap<StridedLayout, Decided>();

// law copy/devicePlanFor: copy/conversion, copy/peer_copy, copy/home_order
/**
 * The plan, or null if it takes more than one step: neither the driver nor a kernel can do it alone.
 *
 * @param reaches which devices can use which memory: as it is now, or as it will be once access is granted
 */
export function devicePlanFor(
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
  conversion: Conversion | null,
  reaches: Reach = hasAccess,
): Planned | null {
  const isReady = conversion === null ||
    (isKernelReady(source, bytesOf(conversion.from)) && isKernelReady(destination, bytesOf(conversion.to)));
  if (!isReady) return null;
  const start = ({ buffer, offset }: CopyOperand) => buffer.ptr + BigInt(offset);
  const [from, to] = [start(source), start(destination)];
  const alignment = (from & 15n) << 4n | (to & 15n);
  const canLaunch = source.buffer.isDeviceAccessible && destination.buffer.isDeviceAccessible;
  let known = decided.get(destination.layout);
  if (
    known?.source !== source.layout || known.alignment !== alignment || known.canLaunch !== canLaunch ||
    known.conversion?.from !== conversion?.from || known.conversion?.to !== conversion?.to
  ) {
    const decision = decide(source.layout, destination.layout, { from, to }, canLaunch, conversion);
    known = { source: source.layout, alignment, canLaunch, conversion, ...decision };
    decided.set(destination.layout, known);
  }
  const { plan, fromOffset, toOffset } = known;
  if (plan === null) return null;
  const device = needsKernel(plan) ? kernelDevice(source, destination, stream, reaches) : stream.device;
  return device && { plan, from: from + fromOffset, to: to + toOffset, device };
}

function decide(
  source: StridedLayout,
  destination: StridedLayout,
  alignment: CopyAlignment,
  canLaunch: boolean,
  conversion: Conversion | null,
): Pick<Decided, "plan" | "fromOffset" | "toOffset"> {
  const packed = source.itemsize < 1 ? packedProblem(source, destination) : null;
  if (packed !== null) {
    const plan: CopyPlan | null = canLaunch ? { kind: "packed", problem: packed, parts: planPacked(packed) } : null;
    return { plan, fromOffset: 0n, toOffset: 0n }; // each part has its own
  }
  const problem = coalesce(source, destination, alignment, conversion);
  const [fromOffset, toOffset] = [BigInt(problem.fromOffset), BigInt(problem.toOffset)];
  return { plan: planDeviceCopy(problem, canLaunch), fromOffset, toOffset };
}

/** Whether a kernel can move each element of a side in one piece, if it can reach them. */
export function isKernelReady({ buffer, offset, layout }: CopyOperand, itemsize: number): boolean {
  return buffer.isDeviceAccessible &&
    (buffer.ptr + BigInt(offset + layout.sliceOffsetInBytes)) % BigInt(itemsize) === 0n;
}

/** The devices to pass to the driver: null if the stream's device can use the memory of both sides. */
export function peersOf(source: CopyOperand, destination: CopyOperand, stream: CudaStream): Run["peers"] {
  const peers = devicesBetween(source, destination);
  return peers === null || canReachBoth(stream.device, source, destination) ? null : peers;
}

// law copy/asRun: copy/conversion, copy/peer_copy
/** A contiguous copy as a single run of bytes. */
export function asRun(
  { from, to }: Planned,
  bytes: number,
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
): Run {
  const direction = isHost(source) ? isHost(destination) ? "HtoH" : "HtoD" : isHost(destination) ? "DtoH" : "DtoD";
  const isPageable = source.buffer.kind === "host" || destination.buffer.kind === "host";
  return { to, from, bytes, direction, isPageable, peers: peersOf(source, destination, stream) };
}
