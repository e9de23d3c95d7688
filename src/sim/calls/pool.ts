/**
 * Stream-ordered memory: pools, allocations from them, and which devices may access these.
 *
 * @module
 */
import {
  CU_MEM_ACCESS_FLAGS_PROT,
  CU_MEM_ALLOCATION_TYPE,
  CU_MEM_HANDLE_TYPE,
  CU_MEM_LOCATION_TYPE,
  CU_MEMPOOL_ATTR,
  CUmemAccessDesc,
  CUmemLocation,
  CUmemPoolProps,
  CUresult,
} from "../../../bindings/cuda_types.ts";
import { struct } from "../../ffi/mod.ts";
import { addressAt, offsetOf } from "../address_space.ts";
import { blockBytes } from "../allocator.ts";
import { type CallTable, refuse, unsimulated } from "../call.ts";
import { captureAllocation, captureFree, freeGraphMemory } from "../graph_memory.ts";
import type { Simulator } from "../simulator.ts";
import { nativeView, readInt, readWord, viewStruct, writeInt, writeWord } from "../out_parameters.ts";
import type { Allocation, Device, Stream } from "../objects.ts";
import type { Pool, PoolBlock } from "../pool.ts";

// law sim/poolCalls: sim/driver, sim/pools, sim/contexts
/** The calls of the group. */
export function poolCalls(simulator: Simulator): CallTable<"pool"> {
  const refuseWithoutPools = (): void => {
    if (!simulator.options.poolsSupported) throw refuse(CUresult.CUDA_ERROR_NOT_SUPPORTED);
  };
  const deviceAt = (location: bigint): Device => {
    const { type, id } = viewStruct(CUmemLocation, location);
    const device = type === CU_MEM_LOCATION_TYPE.DEVICE ? simulator.devices[id] : undefined;
    if (device === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    return device;
  };
  const pinned = (type: number): void => {
    refuseWithoutPools();
    if (type !== CU_MEM_ALLOCATION_TYPE.PINNED) throw unsimulated("pools of managed memory");
  };
  const makeCurrent = (device: Device, pool: Pool): void => {
    if (pool.ordinal !== device.ordinal || pool.origin !== null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    device.currentPool = pool;
  };
  return {
    cuMemAllocAsync(out, size, handle) {
      refuseWithoutPools();
      const stream = simulator.stream(handle);
      allocate(simulator, out, size, stream.context.device.currentPool, stream);
    },
    cuMemAllocFromPoolAsync(out, size, handle, stream) {
      refuseWithoutPools();
      allocate(simulator, out, size, simulator.pool(handle), simulator.stream(stream));
    },
    cuMemFreeAsync(address, handle) {
      refuseWithoutPools();
      const stream = simulator.stream(handle);
      if (stream.capture !== null) return captureFree(simulator, stream, address);
      const allocation = simulator.space.at(address);
      const isFree = allocation?.kind === "pool" || allocation?.kind === "device" || allocation?.kind === "graph";
      if (isFree) simulator.refuseImplicit(stream);
      simulator.refuseInCapture();
      if (address === 0n) return;
      if (!isFree) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (allocation.kind === "pool") return freeFromPool(simulator, allocation, stream);
      if (allocation.kind === "graph") return freeGraphMemory(simulator, allocation, stream);
      simulator.space.allocations.remove(address); // it cannot be freed again, although work may still use it
      simulator.enqueue(stream, () => {
        const { mapped } = allocation.device;
        if (mapped.find(address) === allocation) simulator.free(allocation); // else it has gone with its context
      });
    },
    cuMemPoolCreate(out, address) {
      refuseWithoutPools();
      simulator.refuseInCapture();
      const props = viewStruct(CUmemPoolProps, address);
      if (props.allocType !== CU_MEM_ALLOCATION_TYPE.PINNED) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const shareable = CU_MEM_HANDLE_TYPE.POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE.FABRIC;
      if ((props.handleTypes & ~shareable) !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if ((props.handleTypes & CU_MEM_HANDLE_TYPE.FABRIC) !== 0) throw unsimulated("pools for other machines");
      if (props.location.type === CU_MEM_LOCATION_TYPE.INVALID) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (props.location.type !== CU_MEM_LOCATION_TYPE.DEVICE) throw unsimulated("pools of host memory");
      const device = simulator.devices[props.location.id];
      if (device === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      nativeView(out, 8);
      const pool = simulator.newPool(device.ordinal, device.segments, false, props.maxSize);
      pool.isShareable = props.handleTypes !== CU_MEM_HANDLE_TYPE.NONE;
      writeWord(out, pool.handle);
    },
    cuMemPoolDestroy(handle) {
      const pool = simulator.pool(handle);
      simulator.refuseInCapture();
      if (pool.isDefault) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (pool.origin !== null) {
        const isImported = [...simulator.space.allocations.values()].some((one) => one.pool === pool);
        if (isImported) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // as on a GPU, however many imports there are
        if (--pool.imports > 0) return;
      }
      pool.destroyed = true;
      if (pool.isBusy) simulator.lostPools++; // with all its memory
      else pool.trim(0n);
      const device = simulator.device(pool.ordinal);
      if (device.currentPool === pool) device.currentPool = device.defaultPool;
      simulator.pools.delete(handle);
    },
    cuMemPoolGetAttribute(handle, attribute, out) {
      simulator.refuseInCapture();
      readAttribute(simulator.pool(handle), attribute, out);
    },
    cuMemPoolSetAttribute(handle, attribute, value) {
      simulator.refuseInCapture();
      writeAttribute(simulator.pool(handle), attribute, value);
    },
    cuMemPoolTrimTo(handle, keep) {
      const pool = simulator.pool(handle);
      simulator.refuseInCapture();
      pool.trim(keep);
    },
    cuMemPoolGetAccess(out, handle, location) {
      const pool = simulator.pool(handle);
      writeInt(out, pool.access(deviceAt(location).ordinal));
    },
    cuMemPoolSetAccess(handle, map, count) {
      const pool = simulator.pool(handle);
      simulator.refuseInCapture();
      if (count === 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const size = BigInt(struct(CUmemAccessDesc).size);
      const changes: [ordinal: number, flags: number][] = [];
      for (let i = 0n; i < count; i++) {
        const { location, flags } = viewStruct(CUmemAccessDesc, map + i * size);
        if (location.type !== CU_MEM_LOCATION_TYPE.DEVICE) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
        const { ordinal } = simulator.device(location.id);
        checkAccess(simulator, pool, ordinal, flags);
        changes.push([ordinal, flags]);
      }
      for (const [ordinal, flags] of changes) pool.setAccess(ordinal, flags);
    },
    cuDeviceGetDefaultMemPool(out, device) {
      refuseWithoutPools();
      writeWord(out, simulator.device(device).defaultPool.handle);
    },
    cuDeviceGetMemPool(out, device) {
      refuseWithoutPools();
      writeWord(out, simulator.device(device).currentPool.handle);
    },
    cuDeviceSetMemPool(device, handle) {
      refuseWithoutPools();
      const found = simulator.devices[device];
      if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // not INVALID_DEVICE, here
      makeCurrent(found, simulator.pool(handle));
    },
    cuMemGetDefaultMemPool(out, location, type) {
      pinned(type);
      writeWord(out, deviceAt(location).defaultPool.handle);
    },
    cuMemGetMemPool(out, location, type) {
      pinned(type);
      writeWord(out, deviceAt(location).currentPool.handle);
    },
    cuMemSetMemPool(location, type, handle) {
      pinned(type);
      makeCurrent(deviceAt(location), simulator.pool(handle));
    },
  };
}

// law sim/allocate: sim/driver
function allocate(simulator: Simulator, out: bigint, size: bigint, pool: Pool, stream: Stream): void {
  nativeView(out, 8);
  if (pool.origin !== null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  if (stream.capture !== null) return writeWord(out, captureAllocation(simulator, stream, pool, size));
  if (size > 0n) simulator.refuseImplicit(stream); // before any memory is taken
  simulator.refuseInCapture();
  if (size === 0n) return writeWord(out, 0n);
  const device = simulator.device(pool.ordinal);
  const block = size > BigInt(device.segments.limit) ? null : takeBlock(simulator, Number(size), pool, stream);
  if (block === null) throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  const address = addressAt(device, block.offset);
  const { context } = stream;
  const allocation = simulator.space.add({ kind: "pool", address, bytes: Number(size), context, pool, device });
  const map = (): void => {
    device.memory.poison(block.offset, block.bytes);
    device.mapped.add(address, allocation.bytes, allocation);
  };
  simulator.enqueueAllocation(stream, map, block.after);
  writeWord(out, address);
}

// law sim/takeBlock: sim/pools
/** Takes memory from the pool; as a last resort, after waiting for all frees and trimming the other pools. */
function takeBlock(simulator: Simulator, bytes: number, pool: Pool, stream: Stream): PoolBlock | null {
  const preferReuse = simulator.options.schedule === "random" && simulator.random.chance(0.25);
  const block = pool.allocate(bytes, stream, preferReuse);
  if (block !== null) return block;
  for (const task of simulator.unfinished()) simulator.scheduler.force(task);
  for (const other of simulator.pools.values()) if (other.ordinal === pool.ordinal) other.trim(0n);
  return pool.allocate(bytes, stream, preferReuse);
}

/** Frees pool memory: in stream order, or immediately. */
export function freeFromPool(simulator: Simulator, allocation: Allocation, stream: Stream | null = null): void {
  const { address, bytes, device, pool } = allocation;
  if (pool === null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  const offset = offsetOf(address);
  simulator.space.allocations.remove(address);
  const run = () => {
    device.mapped.remove(address);
    if (pool.origin === null) device.memory.poison(offset, Math.ceil(bytes / blockBytes) * blockBytes);
    else device.memory.unalias(offset, bytes);
  };
  // Without a stream, nothing is waited for: the caller guarantees that all uses have completed.
  const home = stream ?? allocation.context.legacy;
  const task = stream === null ? simulator.queue(allocation.context, home.id, run, []) : simulator.enqueue(stream, run);
  if (stream === null) simulator.scheduler.force(task);
  if (pool.origin === null) pool.release(offset, bytes, home, task);
}

/**
 * Refuses access that cannot be granted: to a device without peer access, and less than full access to the owner.
 */
function checkAccess(simulator: Simulator, pool: Pool, ordinal: number, flags: number): void {
  const { NONE, READ, READWRITE } = CU_MEM_ACCESS_FLAGS_PROT;
  if (flags === READ) throw refuse(CUresult.CUDA_ERROR_NOT_SUPPORTED);
  if (flags !== NONE && flags !== READWRITE) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  if (ordinal === pool.ordinal) {
    if (flags !== READWRITE) throw refuse(CUresult.CUDA_ERROR_INVALID_DEVICE);
  } else if (flags !== NONE && !simulator.options.canAccessPeer(ordinal, pool.ordinal)) {
    throw refuse(CUresult.CUDA_ERROR_INVALID_DEVICE);
  }
}

function readAttribute(pool: Pool, attribute: number, out: bigint): void {
  const { settings } = pool;
  switch (attribute) {
    case CU_MEMPOOL_ATTR.REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return writeInt(out, Number(settings.reuseFollowEventDependencies));
    case CU_MEMPOOL_ATTR.REUSE_ALLOW_OPPORTUNISTIC:
      return writeInt(out, Number(settings.reuseAllowOpportunistic));
    case CU_MEMPOOL_ATTR.REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return writeInt(out, Number(settings.reuseAllowInternalDependencies));
    case CU_MEMPOOL_ATTR.RELEASE_THRESHOLD:
      return writeWord(out, settings.releaseThreshold);
    case CU_MEMPOOL_ATTR.RESERVED_MEM_CURRENT:
      return writeWord(out, BigInt(pool.reserved));
    case CU_MEMPOOL_ATTR.RESERVED_MEM_HIGH:
      return writeWord(out, BigInt(pool.reservedHigh));
    case CU_MEMPOOL_ATTR.USED_MEM_CURRENT:
      return writeWord(out, BigInt(pool.used));
    case CU_MEMPOOL_ATTR.USED_MEM_HIGH:
      return writeWord(out, BigInt(pool.usedHigh));
    default:
      throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
}

function writeAttribute(pool: Pool, attribute: number, value: bigint): void {
  const { settings } = pool;
  switch (attribute) {
    case CU_MEMPOOL_ATTR.REUSE_FOLLOW_EVENT_DEPENDENCIES:
      settings.reuseFollowEventDependencies = readInt(value) !== 0;
      return;
    case CU_MEMPOOL_ATTR.REUSE_ALLOW_OPPORTUNISTIC:
      settings.reuseAllowOpportunistic = readInt(value) !== 0;
      return;
    case CU_MEMPOOL_ATTR.REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      settings.reuseAllowInternalDependencies = readInt(value) !== 0;
      return;
    case CU_MEMPOOL_ATTR.RELEASE_THRESHOLD:
      settings.releaseThreshold = readWord(value);
      return;
    case CU_MEMPOOL_ATTR.RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR.USED_MEM_HIGH:
      if (readWord(value) !== 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // it can only be reset
      if (attribute === CU_MEMPOOL_ATTR.USED_MEM_HIGH) pool.usedHigh = pool.used;
      else pool.reservedHigh = pool.reserved;
      return;
    default:
      throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
}
