/**
 * Which devices may use the memory of a pool: a live Set over the driver.
 *
 * Nothing is cached. A read queries the driver; a change, of one device or many, is at most one driver call, and none
 * if nothing changes, because a change of access may take seconds on a pool with much memory.
 *
 * @module
 */
import { checkMade, show, showAs, showGiven } from "../layout/mod.ts";
import {
  CU_MEM_ACCESS_FLAGS_PROT,
  CU_MEM_LOCATION_TYPE,
  CUmemAccessDesc,
  CUmemLocation,
} from "../../bindings/cuda_types.ts";
import { besideCaptures, CudaDevice, isSameDevice } from "../device/mod.ts";
import { checkCuda, type CudaDriver } from "../driver/mod.ts";
import { layoutOf, NativeArena, struct } from "../ffi/mod.ts";

/** A device, or its ordinal. */
export type DeviceLike = CudaDevice | number;

/** The changes of access to request from the driver, in ascending order of devices. */
export interface PeerAccessPlan {
  readonly grant: readonly number[];
  readonly revoke: readonly number[];
}

// law memory/planPeerAccess: memory/peer_access, memory/peer_access_set, memory/cuda_core_peer_access
/**
 * Computes the changes that lead from the devices with access to those wanted. The owner always has access, and is
 * never listed.
 *
 * @param current ordinals with access now
 * @param wanted ordinals that are to have access
 */
export function planPeerAccess(owner: number, current: Iterable<number>, wanted: Iterable<number>): PeerAccessPlan {
  const before = new Set(current);
  const after = new Set(wanted);
  const ascending = (ordinals: Set<number>, others: Set<number>) =>
    [...ordinals].filter((ordinal) => ordinal !== owner && !others.has(ordinal)).sort((a, b) => a - b);
  return { grant: ascending(after, before), revoke: ascending(before, after) };
}

/** The arguments and result of an access query: made once, because every release of an export queries. */
function makeQuestion() {
  const arena = new NativeArena(); // for the lifetime of the process
  const location = arena.struct(CUmemLocation);
  location.type = CU_MEM_LOCATION_TYPE.DEVICE;
  return { location, flags: arena.out("i32") };
}

let question: ReturnType<typeof makeQuestion> | undefined;

// law memory/isAccessGranted: memory/peer_access, memory/peer_access_set, memory/cuda_core_peer_access
/** Queries the driver whether a device may read and write the memory of a pool. */
export function isAccessGranted(driver: CudaDriver, handle: bigint, ordinal: number): boolean {
  question ??= makeQuestion();
  const { location, flags } = question;
  location.id = ordinal;
  const code = driver.pool.cuMemPoolGetAccess(flags.$address, handle, location.$address);
  checkCuda(driver, "cuMemPoolGetAccess", code);
  return flags.value === CU_MEM_ACCESS_FLAGS_PROT.READWRITE; // read-only access does not count as access here
}

/** The devices from which the user of a pool has withheld access. */
interface Restrictions {
  readonly withheld: Set<number>;
  /** Whether the console was warned about the cost. */
  isCostReported: boolean;
}

/** Restrictions by handle: several objects may stand for one pool. Those of a driver are collected with it. */
const restrictions = new WeakMap<CudaDriver, Map<bigint, Restrictions>>();

function restrictionsOf(driver: CudaDriver, handle: bigint): Restrictions {
  const pools = restrictions.getOrInsertComputed(driver, () => new Map());
  return pools.getOrInsertComputed(handle, () => ({ withheld: new Set(), isCostReported: false }));
}

/** Whether the user of a pool has revoked a device's access, or left it out when replacing the set. */
export function isAccessWithheld(driver: CudaDriver, handle: bigint, ordinal: number): boolean {
  return restrictions.get(driver)?.get(handle)?.withheld.has(ordinal) ?? false;
}

/** Forgets the restrictions of a pool: the driver may reuse its handle for the next pool. */
export function forgetAccess(driver: CudaDriver, handle: bigint): void {
  restrictions.get(driver)?.delete(handle);
}

// law memory/warnAboutCost: copy/peer_copy, memory/peer_access_set
/** Warns on the console, once per pool, what it costs that a device has no access. */
export function warnAboutCost({ device, handle }: PoolOfPeers, peer: number): void {
  const word = restrictionsOf(device.driver, handle);
  if (word.isCostReported) return;
  word.isCostReported = true;
  console.warn(
    `causeway: copies between devices ${device.ordinal} and ${peer} go by way of the host, at a tenth of the rate, ` +
      `because peerAccessibleBy of a pool of ${device} leaves ${peer} out. ` +
      `resource.peerAccessibleBy.add(${peer}) makes them direct.`,
  );
}

// law memory/setAccess: memory/peer_access, memory/peer_access_set, memory/cuda_core_peer_access
/** Changes which devices may use the memory of a pool, in at most one driver call. */
export function setAccess({ device, handle }: PoolOfPeers, { grant, revoke }: PeerAccessPlan): void {
  const count = grant.length + revoke.length;
  if (count === 0) return;
  using arena = new NativeArena();
  const { size } = layoutOf(CUmemAccessDesc);
  const list = arena.bytes(size * count);
  [...grant, ...revoke].forEach((ordinal, i) => {
    const { buffer, byteOffset } = list.bytes;
    const description = struct(CUmemAccessDesc).over(buffer, list.address - BigInt(byteOffset), byteOffset + i * size);
    description.location.type = CU_MEM_LOCATION_TYPE.DEVICE;
    description.location.id = ordinal;
    description.flags = i < grant.length ? CU_MEM_ACCESS_FLAGS_PROT.READWRITE : CU_MEM_ACCESS_FLAGS_PROT.NONE;
  });
  const { driver } = device;
  const code = besideCaptures(driver, () => driver.pool.cuMemPoolSetAccess(handle, list.address, BigInt(count)));
  checkCuda(driver, "cuMemPoolSetAccess", code);
}

/** What a peer access set needs of its pool. */
export interface PoolOfPeers {
  /** The device whose memory it is. */
  readonly device: CudaDevice;
  /** The pool's handle, if it is open. */
  readonly handle: bigint;
}

/**
 * The devices, besides the owner, that may read and write the memory of a pool.
 *
 * It is a JavaScript Set in every respect, iterated in ascending order, whose members live in the driver: two sets over
 * one pool always agree. Devices may be passed as ordinals. The owner is silently dropped from every change. `union`
 * and similar methods return plain Sets. Additional methods change many devices in one call.
 *
 * A copy between two devices grants one of them access, once, because without it the driver sends the bytes through the
 * host, at a tenth of the rate: the set then has one more member. A device that was deleted, or left out when the whole
 * set was replaced, is not granted access this way; the console warns once what that costs.
 *
 * @example
 * ```ts ignore
 * pool.peerAccessibleBy.addAll(cuda.devices); // one call to the driver
 * pool.peerAccessibleBy.has(1); // asks the driver
 * pool.peerAccessibleBy = []; // the owner alone
 * ```
 */
export class PeerAccessSet implements Set<CudaDevice> {
  readonly #pool: PoolOfPeers;

  /** Use `pool.peerAccessibleBy`. */
  constructor(pool: PoolOfPeers) {
    checkMade(pool, "PeerAccessSet", "resource.peerAccessibleBy");
    this.#pool = pool;
  }

  /** How many devices have access, besides the owner. */
  get size(): number {
    return this.#current().length;
  }

  /** Whether a device has access. False for anything but another device of this driver, the owner included. */
  has(device: DeviceLike): boolean {
    const ordinal = this.#find(device);
    return ordinal !== null && this.#isGranted(ordinal);
  }

  /**
   * Grants a device access.
   *
   * @throws {RangeError} if there is no such device, or it cannot reach the memory
   */
  add(device: DeviceLike): this {
    return this.addAll([device]);
  }

  // law memory/PeerAccessSet.delete: memory/peer_access, memory/peer_access_set, memory/cuda_core_peer_access
  /** Revokes a device's access. @returns whether it had access */
  delete(device: DeviceLike): boolean {
    const ordinal = this.#find(device);
    if (ordinal === null) return false;
    const wasGranted = this.#isGranted(ordinal);
    if (wasGranted) setAccess(this.#pool, { grant: [], revoke: [ordinal] });
    this.#withheld.add(ordinal);
    return wasGranted;
  }

  /** Revokes the access of all devices but the owner. */
  clear(): void {
    this.replace([]);
  }

  /**
   * Grants all these devices access.
   *
   * @throws {RangeError} naming every device that does not exist or cannot reach the memory; nothing has changed then
   */
  addAll(devices: Iterable<DeviceLike>): this {
    const wanted = this.#resolve(devices); // before any driver call
    const current = this.#current();
    return this.#become(current, [...current, ...wanted], []);
  }

  /** Revokes the access of all these devices. Devices without access, and values that are no device, are skipped. */
  deleteAll(devices: Iterable<DeviceLike>): this {
    const gone = this.#findAll(devices);
    const current = this.#current();
    return this.#become(current, current.filter((ordinal) => !gone.has(ordinal)), gone);
  }

  /** Revokes the access of all devices but these. */
  retainAll(devices: Iterable<DeviceLike>): this {
    const kept = this.#findAll(devices);
    const current = this.#current();
    return this.#become(current, current.filter((ordinal) => kept.has(ordinal)), this.#others());
  }

  /** Grants access to those of these devices that have none, and revokes it from those that have it. */
  toggleAll(devices: Iterable<DeviceLike>): this {
    const toggled = this.#resolve(devices);
    const current = new Set(this.#current());
    return this.#become([...current], current.symmetricDifference(toggled), toggled);
  }

  /** Grants exactly these devices access. */
  replace(devices: Iterable<DeviceLike>): this {
    const wanted = this.#resolve(devices);
    return this.#become(this.#current(), wanted, this.#others());
  }

  /** The devices with access now, in ascending order. */
  *[Symbol.iterator](): SetIterator<CudaDevice> {
    yield* this.#snapshot();
  }

  /** The devices with access, in ascending order. */
  values(): SetIterator<CudaDevice> {
    return this.#snapshot().values();
  }

  /** The same as `values`. */
  keys(): SetIterator<CudaDevice> {
    return this.#snapshot().keys();
  }

  /** Each device twice, as a Set does. */
  entries(): SetIterator<[CudaDevice, CudaDevice]> {
    return this.#snapshot().entries();
  }

  /** Calls a function for each device with access. @throws {TypeError} if it is not a function */
  forEach(callback: (device: CudaDevice, again: CudaDevice, set: Set<CudaDevice>) => void, self?: unknown): void {
    if (typeof callback !== "function") {
      throw new TypeError(`Cannot call ${showGiven(callback)} for each device: expected a function`);
    }
    for (const device of this.#snapshot()) callback.call(self, device, device, this);
  }

  /** Devices with access, and the members of another set, as a plain Set. */
  union<U>(other: ReadonlySetLike<U>): Set<CudaDevice | U> {
    return this.#snapshot().union(other);
  }

  /** Devices with access that are also in another set, as a plain Set. */
  intersection<U>(other: ReadonlySetLike<U>): Set<CudaDevice & U> {
    return this.#snapshot().intersection(other);
  }

  /** Devices with access that are not in another set, as a plain Set. */
  difference<U>(other: ReadonlySetLike<U>): Set<CudaDevice> {
    return this.#snapshot().difference(other);
  }

  /** Members of exactly one of the two sets, as a plain Set. */
  symmetricDifference<U>(other: ReadonlySetLike<U>): Set<CudaDevice | U> {
    return this.#snapshot().symmetricDifference(other);
  }

  /** Whether every device with access is in another set. */
  isSubsetOf(other: ReadonlySetLike<unknown>): boolean {
    return this.#snapshot().isSubsetOf(other);
  }

  /** Whether every member of another set has access. */
  isSupersetOf(other: ReadonlySetLike<unknown>): boolean {
    return this.#snapshot().isSupersetOf(other);
  }

  /** Whether no member of another set has access. */
  isDisjointFrom(other: ReadonlySetLike<unknown>): boolean {
    return this.#snapshot().isDisjointFrom(other);
  }

  /** `PeerAccessSet`. */
  get [Symbol.toStringTag](): string {
    return "PeerAccessSet";
  }

  #snapshot(): Set<CudaDevice> {
    const { siblings } = this.#pool.device;
    return new Set(this.#current().flatMap((ordinal) => siblings[ordinal] ?? []));
  }

  /** Ordinals with access, in ascending order. */
  #current(): number[] {
    const { handle } = this.#pool; // throws if the pool is closed
    return this.#others().filter((ordinal) => this.#isGranted(ordinal, handle));
  }

  #isGranted(ordinal: number, handle: bigint = this.#pool.handle): boolean {
    return isAccessGranted(this.#pool.device.driver, handle, ordinal);
  }

  // law memory/PeerAccessSet.find: memory/peer_access, memory/peer_access_set, memory/cuda_core_peer_access
  /** The ordinal of another device of this driver, or null. */
  #find(device: unknown): number | null {
    const { siblings, ordinal: owner } = this.#pool.device;
    const ordinal = typeof device === "number"
      ? device
      : siblings.find((one) => isDevice(device) && isSameDevice(one, device))?.ordinal;
    return ordinal !== undefined && ordinal !== owner && siblings[ordinal] !== undefined ? ordinal : null;
  }

  #findAll(devices: Iterable<DeviceLike>): Set<number> {
    return new Set([...devices].map((device) => this.#find(device)).filter((ordinal) => ordinal !== null));
  }

  // law memory/PeerAccessSet.resolve: memory/peer_access, memory/peer_access_set, memory/cuda_core_peer_access
  /** Ordinals of devices, which must exist; the owner is dropped. */
  #resolve(devices: Iterable<DeviceLike>): Set<number> {
    if (typeof (devices as Partial<Iterable<DeviceLike>> | null | undefined)?.[Symbol.iterator] !== "function") {
      throw new TypeError(`Cannot give ${show(devices)} access: expected devices, such as cuda.devices or [1]`);
    }
    const { device: owner } = this.#pool;
    const isOwner = (device: DeviceLike) => isDevice(device) ? isSameDevice(device, owner) : device === owner.ordinal;
    const others = [...devices].filter((device) => !isOwner(device));
    const unknown = others.filter((device) => this.#find(device) === null);
    if (unknown.length > 0) {
      const named = unknown.map((device) =>
        isDevice(device) ? `${device} of another Cuda` : typeof device === "number" ? `device ${device}` : show(device)
      );
      throw new RangeError(
        `Cannot give ${named.join(", ")} access: expected a device of the same Cuda, or an ordinal from 0 to ` +
          `${owner.siblings.length - 1}`,
      );
    }
    return this.#findAll(others);
  }

  // law memory/PeerAccessSet.become: memory/peer_access_set, memory/peer_access, memory/cuda_core_peer_access,
  //   copy/peer_copy
  /** @param decided the devices that the user has decided about: access is withheld from those not granted it */
  #become(current: readonly number[], wanted: Iterable<number>, decided: Iterable<number>): this {
    const { device: owner } = this.#pool;
    const plan = planPeerAccess(owner.ordinal, current, wanted);
    // Queried in the direction of the grant: whether the peer can reach the owner's memory.
    const unreachable = plan.grant.filter((ordinal) => owner.siblings[ordinal]?.canAccessPeer(owner) !== true);
    if (unreachable.length > 0) {
      throw new RangeError(
        `Cannot give access to device${unreachable.length === 1 ? "" : "s"} ${unreachable.join(", ")}: ` +
          `no path from there to the memory of ${owner}. Check canAccessPeer() first.`,
      );
    }
    setAccess(this.#pool, plan);
    const withheld = this.#withheld;
    for (const ordinal of decided) withheld.add(ordinal);
    for (const ordinal of wanted) withheld.delete(ordinal);
    return this;
  }

  /** The devices from which the user has withheld access. */
  get #withheld(): Set<number> {
    return restrictionsOf(this.#pool.device.driver, this.#pool.handle).withheld;
  }

  // law memory/PeerAccessSet.others: memory/peer_access, memory/peer_access_set, memory/cuda_core_peer_access
  /** All devices but the owner, in ascending order. */
  #others(): number[] {
    const { siblings, ordinal: owner } = this.#pool.device;
    return siblings.flatMap(({ ordinal }) => ordinal === owner ? [] : [ordinal]);
  }

  static {
    showAs(PeerAccessSet, (set) => set.size === 0 ? "{}" : `{ ${[...set].map(({ ordinal }) => ordinal).join(", ")} }`);
  }
}

function isDevice(device: unknown): device is CudaDevice {
  return device instanceof CudaDevice;
}
