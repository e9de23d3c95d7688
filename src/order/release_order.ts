/**
 * What a free waits for after consumers on unknown streams have released the memory.
 *
 * @module
 */
import {
  type CudaDevice,
  type CudaStream,
  isBlockedByCapture,
  isCapturing,
  isRefusedByCapture,
  waitForDevice,
} from "../device/mod.ts";
import { canReach } from "./can_reach.ts";
import type { OrderedMemory } from "./ordered_memory.ts";

/**
 * Orders memory after consumers whose streams are unknown have released it: the home stream waits for all work now
 * enqueued in the contexts of all devices that can reach the memory, the consumers' included, so that the home stream's
 * next work, above all the free, comes after it. The host does not wait, unless the driver is older than CUDA 12.5,
 * which cannot do this. In a lost context there is nothing left to wait for.
 *
 * Each home stream waits once for each device, however many buffers are ordered: so all of them must have been released
 * before the first one is ordered.
 */
export class ReleaseOrder {
  /** The devices that each home stream waits for. */
  #waits: Map<CudaStream, Set<CudaDevice>> | undefined;

  // law order/ReleaseOrder.add: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
  /**
   * Orders the next use of a buffer after its consumers' work.
   *
   * @returns false if it cannot be done now and must be retried: while a stream is captured, it would invalidate the
   *   capture. A capture of another library is only detected if the legacy default stream would wait for it
   */
  add(buffer: OrderedMemory): boolean {
    const { stream } = buffer;
    if (stream === null) return true;
    if (isCapturing(stream.device.driver)) return false;
    const owner = buffer.device ?? stream.device; // pinned memory is the host's, and devices use it too
    const waits = (this.#waits ??= new Map()).getOrInsertComputed(stream, noDevices);
    if (!waits.has(owner) && !waitOnce(stream, owner, waits)) return false;
    for (const peer of owner.siblings) {
      if (!waits.has(peer) && mayHaveUsed(peer, buffer, owner) && !waitOnce(stream, peer, waits)) return false;
    }
    return true;
  }
}

const noDevices = () => new Set<CudaDevice>();

// law order/waitOnce: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
function waitOnce(stream: CudaStream, device: CudaDevice, waits: Set<CudaDevice>): boolean {
  if (!waitForContext(stream, device)) return false;
  waits.add(device);
  return true;
}

// law order/waitForContext: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease,
//   memory/beside_captures, order/default_home
/**
 * Makes a stream wait for all work of a device; if the driver refuses, the host waits. A device may be gone, with no
 * work left: foreign memory retains no device.
 *
 * @returns false if a capture is in the way
 */
function waitForContext(stream: CudaStream, device: CudaDevice): boolean {
  if (device.isGone) return true;
  if (
    isBlockedByCapture(device) || (stream.isLegacy && stream.device !== device && isBlockedByCapture(stream.device))
  ) return false;
  try {
    const event = device.acquireEvent();
    try {
      if (device.recordContext(event)) {
        stream.wait(event);
        return true;
      }
    } finally {
      device.releaseEvent(event);
    }
  } catch (error) {
    if (isRefusedByCapture(error)) return false;
    // Otherwise the host waits.
  }
  try {
    waitForDevice(device);
  } catch (error) {
    if (isRefusedByCapture(error)) return false;
    throw error;
  }
  return true;
}

// law order/mayHaveUsed: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Whether a consumer may have used the memory on a peer of its device: one that can reach it and has a context. Work
 * in the memory's own context is waited for in any case, even if the consumer works on a peer: work that the driver
 * does for the peer in the memory's context, such as copying managed memory to the host, is not covered by events of
 * the peer's context (`tests/gpu/context_order_test.ts`).
 */
function mayHaveUsed(peer: CudaDevice, buffer: OrderedMemory, owner: CudaDevice): boolean {
  if (!peer.isActive) return false;
  // Foreign memory passed as a device's own may be managed, which every device reaches.
  return buffer.owner !== undefined || canReach(peer, buffer, owner);
}
