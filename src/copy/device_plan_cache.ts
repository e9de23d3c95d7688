/**
 * Plans for copies between actual memory: the plan, the addresses of the first words, and the device that carries it
 * out. Plans are cached for each device, by what they depend on: they know no memory, and no layout's place in it.
 *
 * @module
 */
import { type CudaDevice, type CudaStream, PerDevice } from "../device/mod.ts";
import type { StridedLayout } from "../layout/mod.ts";
import type { Run } from "../memory/mod.ts";
import { firstAddress } from "./array_parts.ts";
import { bytesOf, type Conversion, idOf } from "./conversion.ts";
import { type CopyPlan, needsKernel, planDeviceCopy } from "./device_plan.ts";
import { coalesce, type CopyAlignment, packedProblem } from "./coalesced_copy.ts";
import { canReachBoth, type CopyOperand, devicesBetween, isHost, kernelDevice, type Reach } from "./copy_operand.ts";
import { planPacked } from "./packed_plan.ts";
import { PlanCache } from "./plan_cache.ts";
import { hasAccess } from "../order/mod.ts";

/** A plan, and the addresses where the first word is read and written. */
export interface Planned {
  readonly plan: CopyPlan;
  readonly from: bigint;
  readonly to: bigint;
  /** The device that runs the kernel, if the plan has one. */
  readonly device: CudaDevice;
}

/** A plan, wherever the first elements lie. */
interface Decision {
  /** Null if the host must take part. */
  readonly plan: CopyPlan | null;
  /** Bytes from the first element of each side to the first word. */
  readonly fromOffset: bigint;
  readonly toOffset: bigint;
}

/** Plans of packed elements with more kernels than this are made anew each time: they are rare, and may be large. */
const maxParts = 16;

// law copy/DecisionCache: copy/device_plan_cache
/** Decisions of earlier copies. */
export class DecisionCache {
  readonly #decisions = new PlanCache<Decision>();

  /** As {@linkcode decide}, which it calls if there is no such decision yet. */
  decide(
    source: StridedLayout,
    destination: StridedLayout,
    alignment: Required<CopyAlignment>,
    canLaunch: boolean,
    conversion: Conversion | null,
  ): Decision {
    const kind = kindOf(source.itemsize, alignment, canLaunch, conversion);
    if (!Number.isSafeInteger(kind)) return decide(source, destination, alignment, canLaunch, conversion);
    const known = this.#decisions.find(source, destination, kind);
    if (known !== null) return known;
    const decision = decide(source, destination, alignment, canLaunch, conversion);
    const { plan } = decision;
    if (plan?.kind !== "packed" || plan.parts.length <= maxParts) {
      this.#decisions.add(source, destination, kind, decision);
    }
    return decision;
  }
}

/** Everything that a decision depends on besides shape and strides, as a number; one too large is not exact. */
function kindOf(
  itemsize: number,
  { from, to }: Required<CopyAlignment>,
  canLaunch: boolean,
  conversion: Conversion | null,
): number {
  const elements = conversion === null ? itemsize * 8 : -idOf(conversion);
  return (elements * 256 + Number((from & 15n) << 4n | to & 15n)) * 2 + (canLaunch ? 1 : 0);
}

/** Decides how to copy between memory with the given addresses of the first elements. */
export function decide(
  source: StridedLayout,
  destination: StridedLayout,
  alignment: CopyAlignment,
  canLaunch: boolean,
  conversion: Conversion | null,
): Decision {
  const packed = source.itemsize < 1 ? packedProblem(source, destination) : null;
  if (packed !== null) {
    const plan: CopyPlan | null = canLaunch ? { kind: "packed", problem: packed, parts: planPacked(packed) } : null;
    return { plan, fromOffset: 0n, toOffset: 0n }; // each part has its own
  }
  const problem = coalesce(source, destination, alignment, conversion);
  const [fromOffset, toOffset] = [BigInt(problem.fromOffset), BigInt(problem.toOffset)];
  return { plan: planDeviceCopy(problem, canLaunch), fromOffset, toOffset };
}

/** Of each device its own: a kernel that was compiled for a plan lasts as long as the plan (`copy_kernel_cache.ts`). */
const decisions = new PerDevice(() => new DecisionCache(), () => {});

// law copy/devicePlanFor: copy/conversion, copy/peer_copy, copy/home_order, copy/device_plan_cache
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
  const [from, to] = [firstAddress(source), firstAddress(destination)];
  const canLaunch = source.buffer.isDeviceAccessible && destination.buffer.isDeviceAccessible;
  const cache = decisions.of(stream.device);
  const decision = cache.decide(source.layout, destination.layout, { from, to }, canLaunch, conversion);
  const { plan, fromOffset, toOffset } = decision;
  if (plan === null) return null;
  const device = needsKernel(plan) ? kernelDevice(source, destination, stream, reaches) : stream.device;
  return device && { plan, from: from + fromOffset, to: to + toOffset, device };
}

/** Whether a kernel can move each element of a side in one piece, if it can reach them. */
export function isKernelReady(side: CopyOperand, itemsize: number): boolean {
  return side.buffer.isDeviceAccessible && firstAddress(side) % BigInt(itemsize) === 0n;
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
