/**
 * Which devices can use which memory.
 *
 * @module
 */
import { type CudaDevice, isSameDevice } from "../device/mod.ts";
import type { OrderedMemory } from "./ordered_memory.ts";

// law order/canReach: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/**
 * Whether a device can be granted access to another device's memory, by any library: if so, its work may have used that
 * memory.
 */
export function canReach(
  peer: CudaDevice,
  { pool, kind }: Pick<OrderedMemory, "pool" | "kind">,
  owner: CudaDevice,
): boolean {
  if (kind !== "device") return true;
  return pool === null ? peer.canAccessPeer(owner) : pool.isReachedBy(peer);
}

// law order/hasAccess: copy/peer_copy
/**
 * Whether kernels of a device can use memory now: its own, page-locked host memory, and another device's memory whose
 * pool grants it access, even if the pool is closed.
 */
export function hasAccess(
  device: CudaDevice,
  { pool, kind, device: owner }: Pick<OrderedMemory, "pool" | "kind" | "device">,
): boolean {
  if (kind !== "device" || owner === null) return kind !== "host";
  return isSameDevice(owner, device) || (pool?.isReachedBy(device) ?? false);
}
