/**
 * One side of a copy, and which devices can access it.
 *
 * @module
 */
import { type CudaDevice, type CudaStream, isSameDevice, PerDevice } from "../device/mod.ts";
import { observerOf } from "../driver/mod.ts";
import type { StridedLayout } from "../layout/mod.ts";
import { type Access, accessesBetween, DeviceMemoryResource, type MemoryBuffer } from "../memory/mod.ts";
import { hasAccess, orderStreams } from "../order/mod.ts";
import { byteCount } from "./array_parts.ts";

/** One side of a copy. */
export interface CopyOperand {
  readonly buffer: MemoryBuffer;
  /** Bytes from the start of the buffer to offset 0 of the layout. */
  readonly offset: number;
  readonly layout: StridedLayout;
}

/** A temporary side, for one copy. */
export interface TemporaryOperand extends CopyOperand {
  [Symbol.dispose](): void;
}

/** Memory of a stream's device for a dense layout; freed in the order of the stream. */
export function temporary(layout: StridedLayout, stream: CudaStream): TemporaryOperand {
  const buffer = new DeviceMemoryResource(stream.device).allocate(byteCount({ layout }), { stream });
  return { buffer, offset: 0, layout, [Symbol.dispose]: () => buffer.close() };
}

/** Whether a side is host memory, pinned or not. */
export function isHost({ buffer }: CopyOperand): boolean {
  return buffer.kind === "host" || buffer.kind === "pinned";
}

/** The device whose own memory a side is; null for host memory and managed memory. */
function homeOf({ buffer }: CopyOperand): CudaDevice | null {
  return buffer.kind === "device" ? buffer.device : null;
}

/** The two devices that a copy is between, or null. */
export function devicesBetween(
  source: CopyOperand,
  destination: CopyOperand,
): { readonly from: CudaDevice; readonly to: CudaDevice } | null {
  const [from, to] = [homeOf(source), homeOf(destination)];
  return from === null || to === null || isSameDevice(from, to) ? null : { from, to };
}

// law copy/accessOptions: copy/peer_copy
/** The accesses that a copy between two devices can use, the best first; none for any other copy. */
export function accessOptions(source: CopyOperand, destination: CopyOperand): Access[] {
  const between = devicesBetween(source, destination);
  if (between === null) return [];
  const ways = accessesBetween(source.buffer, between.from, destination.buffer, between.to);
  return onlyDestinationHasGaps(source, destination) ? ways.reverse() : ways;
}

function onlyDestinationHasGaps(source: CopyOperand, destination: CopyOperand): boolean {
  return source.layout.isDense && !destination.layout.isDense;
}

/** Whether kernels of a device can use memory. */
export type Reach = (device: CudaDevice, memory: MemoryBuffer) => boolean;

// law copy/outOfReach: copy/far_stream
/**
 * The device on which a copy must be enqueued instead of the stream's own, because that one cannot reach the device
 * memory involved; or null. Between two devices the driver finds the path itself.
 */
export function outOfReach(source: CopyOperand, destination: CopyOperand, { device }: CudaStream): CudaDevice | null {
  if (canReachDevices(device, source) && canReachDevices(device, destination)) return null;
  return devicesBetween(source, destination) === null ? homeOf(source) ?? homeOf(destination) : null;
}

/** Whether work on a device can use a side that is device memory: the driver's copies reach all other memory. */
function canReachDevices(device: CudaDevice, side: CopyOperand): boolean {
  return homeOf(side) === null || hasAccess(device, side.buffer);
}

/** Whether work on a device can use both sides. */
export function canReachBoth(device: CudaDevice, source: CopyOperand, destination: CopyOperand): boolean {
  return hasAccess(device, source.buffer) && hasAccess(device, destination.buffer);
}

/**
 * The device whose kernels can use both sides, or null. Between two devices it is the one whose side has gaps, if it
 * has access: the transfer between them is then contiguous, which is twice as fast.
 */
export function kernelDevice(
  source: CopyOperand,
  destination: CopyOperand,
  stream: CudaStream,
  reaches: Reach,
): CudaDevice | null {
  const [from, to, own] = [homeOf(source), homeOf(destination), stream.device];
  if ((from === null || from === own) && (to === null || to === own)) return own;
  const devices = onlyDestinationHasGaps(source, destination) ? [to, from, own] : [from, to, own];
  return devices.find((one) => one !== null && reaches(one, source.buffer) && reaches(one, destination.buffer)) ?? null;
}

/** Streams for work that another device's stream waits for. */
const helpers = new PerDevice<CudaStream>(
  (device) => {
    const helper = device.createStream();
    observerOf(device.driver)?.closedByUser(helper.handle); // closed with the device
    return helper;
  },
  (helper) => helper.close(),
);

// law copy/enqueueOn: copy/peer_copy
/**
 * Enqueues work on a device: on the stream if it belongs to that device, else on a helper stream, in the stream's
 * order.
 */
export function enqueueOn(device: CudaDevice, stream: CudaStream, work: (stream: CudaStream) => void): void {
  if (isSameDevice(stream.device, device)) return work(stream);
  const helper = helperStream(device);
  orderStreams(stream, helper);
  work(helper);
  orderStreams(helper, stream);
}

/** A helper stream of a device, which is empty once the code that used it has waited for its work. */
export function helperStream(device: CudaDevice): CudaStream {
  return helpers.of(device);
}
