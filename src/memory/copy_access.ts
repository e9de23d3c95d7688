/**
 * Peer access to another device's memory, enabled for a copy between the two. Without it the driver sends the bytes
 * through the host: 38 GB/s between two H200s instead of 390. Access by one of the two devices would be enough, but
 * that device would then move the bytes of both directions: 560 GB/s instead of 1500 among four H200s that send to each
 * other. So the sender gets access, once for each direction, as in torch: 20 ms the first time, and half a millisecond
 * for each GiB that the pool has (all measured there with driver 580).
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { besideCaptures, type CudaDevice, isCapturing } from "../device/mod.ts";
import { CudaError } from "../driver/mod.ts";
import type { MemoryBuffer } from "./memory_buffer.ts";
import { isAccessWithheld, setAccess, warnAboutCost } from "./peer_access.ts";

/** Memory, and another device that is to use it. */
export interface Access {
  readonly buffer: MemoryBuffer;
  readonly owner: CudaDevice;
  readonly peer: CudaDevice;
}

/** Size in bytes from which the console warns that a copy is slow because access is withheld. */
const worthSaying = 2 ** 20;

/** Owner devices and the peers that we have enabled to use their ordinary memory, which belongs to no pool. */
const enabled = new WeakMap<CudaDevice, WeakSet<CudaDevice>>();

/** Owner devices and the peers to which the driver has refused access. */
const refused = new WeakMap<CudaDevice, WeakSet<CudaDevice>>();

/** The accesses between two devices, one of which a copy needs: the best for a kernel of the source's device first. */
export function accessesBetween(
  source: MemoryBuffer,
  from: CudaDevice,
  destination: MemoryBuffer,
  to: CudaDevice,
): Access[] {
  return [{ buffer: destination, owner: to, peer: from }, { buffer: source, owner: from, peer: to }];
}

function has(pairs: WeakMap<CudaDevice, WeakSet<CudaDevice>>, { owner, peer }: Access): boolean {
  return pairs.get(owner)?.has(peer) ?? false;
}

function note(pairs: WeakMap<CudaDevice, WeakSet<CudaDevice>>, { owner, peer }: Access): void {
  pairs.getOrInsertComputed(owner, () => new WeakSet()).add(peer);
}

function isTaken(access: Access): boolean {
  const { buffer: { pool }, peer } = access;
  return pool === null ? has(enabled, access) : pool.isReachedBy(peer);
}

function isWithheld({ buffer: { pool }, peer }: Access): boolean {
  return pool !== null && !pool.isClosed && isAccessWithheld(pool.device.driver, pool.handle, peer.ordinal);
}

// law memory/canBeGranted: copy/peer_copy
/** Access to another process's pool, or to a closed one, cannot be changed here. */
function canBeGranted(access: Access): boolean {
  const { buffer: { pool }, owner, peer } = access;
  if (pool !== null && (pool.isImported || pool.isClosed || isWithheld(access))) return false;
  return !has(refused, access) && peer.canAccessPeer(owner);
}

// law memory/planAccess: copy/peer_copy
/**
 * Decides which access to enable for a copy between the memory of two devices.
 *
 * @param accesses each would be enough; the best first
 * @returns null if the deciding access is granted already, or none can be
 */
export function planAccess(accesses: readonly Access[]): Access | null {
  const [first] = accesses;
  if (first === undefined || isCapturing(first.owner.driver)) return null; // a grant would invalidate the capture
  // Access to a pool serves kernels, too; access to a device's ordinary memory serves only copies by the driver.
  const decides = accesses.find((access) => access.buffer.pool !== null && isPossible(access)) ??
    accesses.find(isPossible);
  return decides === undefined || isTaken(decides) ? null : decides;
}

function isPossible(access: Access): boolean {
  return isTaken(access) || canBeGranted(access);
}

// law memory/takeAccess: copy/peer_copy
/**
 * Enables the access that {@linkcode planAccess} has chosen, unless the driver refuses: then the copy goes through the
 * host. If the user of a pool has withheld access, it stays withheld, and the console is warned.
 */
export function takeAccess(accesses: readonly Access[], bytes: number): void {
  const access = planAccess(accesses);
  if (access !== null) return take(access);
  if (bytes < worthSaying || accesses.some(isTaken)) return;
  const withheld = accesses.find(isWithheld);
  if (withheld?.buffer.pool) warnAboutCost(withheld.buffer.pool, withheld.peer.ordinal);
}

// law memory/take: copy/peer_copy
function take(access: Access): void {
  const { buffer: { pool }, owner, peer } = access;
  if (pool === null) {
    const enable = () => peer.driver.context.cuCtxEnablePeerAccess(owner.context, 0);
    const code = besideCaptures(peer.driver, () => peer.withContext(enable));
    const isEnabled = code === CUresult.CUDA_SUCCESS || code === CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    return note(isEnabled ? enabled : refused, access);
  }
  try {
    setAccess(pool, { grant: [peer.ordinal], revoke: [] });
  } catch (error) {
    if (!(error instanceof CudaError)) throw error;
    note(refused, access);
  }
}
