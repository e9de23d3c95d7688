/**
 * Who can use whose memory.
 *
 * @module
 */
import type { CudaDevice } from "../device/mod.ts";
import type { OrderedMemory } from "./ordered_memory.ts";

// law order/canReach: order/order, dlpack/export, order/refusals, dlpack/host_consumers, order/lease
/** Whether a device can read and write the memory of another one directly. */
export function canReach(
  peer: CudaDevice,
  { pool, kind }: Pick<OrderedMemory, "pool" | "kind">,
  owner: CudaDevice,
): boolean {
  if (kind !== "device") return true;
  return pool === null ? peer.canAccessPeer(owner) : pool.isReachedBy(peer);
}
