/**
 * Memory in stream order: pools, what is allocated from them, and which devices may use it.
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
import { struct } from "../../ffi/struct.ts";
import { addressAt, offsetOf } from "../address_space.ts";
import { blockBytes } from "../allocator.ts";
import type { Behaviour } from "../call_table.ts";
import { captureAllocation, captureFree, freeOfGraph } from "../graph_memory.ts";
import type { Machine } from "../simulator_state.ts";
import { nativeView, readInt, readWord, writeInt, writeWord } from "../out_parameters.ts";
import type { Allocation, Device, Stream } from "../objects.ts";
import type { Pool, PoolBlock } from "../pool.ts";
import { refuse, unsimulated } from "../call_error.ts";

/** The calls of the group. */
export function poolCalls(machine: Machine): Behaviour<"pool"> {
  const refuseWithoutPools = (): void => {
    if (!machine.options.poolsSupported) throw refuse(CUresult.CUDA_ERROR_NOT_SUPPORTED);
  };
  const deviceAt = (location: bigint): Device => {
    nativeView(location, 8);
    const { type, id } = struct(CUmemLocation).at(location);
    const device = type === CU_MEM_LOCATION_TYPE.DEVICE ? machine.devices[id] : undefined;
    if (device === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    return device;
  };
  const pinned = (type: number): void => {
    refuseWithoutPools();
    if (type !== CU_MEM_ALLOCATION_TYPE.PINNED) throw unsimulated("pools of managed memory");
  };
  const makeCurrent = (device: Device, pool: Pool): void => {
    if (pool.ordinal !== device.ordinal || pool.destroyed || pool.origin !== null) {
      throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    }
    device.currentPool = pool;
  };
  return {
    cuMemAllocAsync(out, size, handle) {
      refuseWithoutPools();
      const stream = machine.stream(handle);
      allocate(machine, out, size, stream.context.device.currentPool, stream);
    },
    cuMemAllocFromPoolAsync(out, size, handle, stream) {
      refuseWithoutPools();
      allocate(machine, out, size, machine.pool(handle), machine.stream(stream));
    },
    cuMemFreeAsync(address, handle) {
      refuseWithoutPools();
      const stream = machine.stream(handle);
      if (stream.capture !== null) return captureFree(machine, stream, address);
      const allocation = machine.space.at(address);
      const isFree = allocation?.kind === "pool" || allocation?.kind === "device" || allocation?.kind === "graph";
      if (isFree) machine.refuseImplicit(stream);
      machine.refuseInCapture();
      if (address === 0n) return;
      if (!isFree) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (allocation.kind === "pool") return freeFromPool(machine, allocation, stream);
      if (allocation.kind === "graph") return freeOfGraph(machine, allocation, stream);
      machine.enqueue(stream, () => machine.free(allocation));
    },
    cuMemPoolCreate(out, address) {
      refuseWithoutPools();
      machine.refuseInCapture();
      nativeView(address, struct(CUmemPoolProps).size);
      const props = struct(CUmemPoolProps).at(address);
      if (props.allocType !== CU_MEM_ALLOCATION_TYPE.PINNED) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const shareable = CU_MEM_HANDLE_TYPE.POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE.FABRIC;
      if ((props.handleTypes & ~shareable) !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if ((props.handleTypes & CU_MEM_HANDLE_TYPE.FABRIC) !== 0) throw unsimulated("pools for other machines");
      if (props.location.type === CU_MEM_LOCATION_TYPE.INVALID) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (props.location.type !== CU_MEM_LOCATION_TYPE.DEVICE) throw unsimulated("pools of host memory");
      const device = machine.devices[props.location.id];
      if (device === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      nativeView(out, 8);
      const pool = machine.newPool(device.ordinal, device.segments, false, props.maxSize);
      pool.isShareable = props.handleTypes !== CU_MEM_HANDLE_TYPE.NONE;
      writeWord(out, pool.handle);
    },
    cuMemPoolDestroy(handle) {
      const pool = machine.pool(handle);
      machine.refuseInCapture();
      if (pool.isDefault) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (pool.origin !== null) {
        const isShown = [...machine.space.known.values()].some((one) => one.pool === pool);
        if (isShown) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // as on a GPU, however many imports there are
        if (--pool.imports > 0) return;
      }
      pool.destroyed = true;
      if (pool.isBusy) machine.lostPools++;
      const device = machine.device(pool.ordinal);
      if (device.currentPool === pool) device.currentPool = device.defaultPool;
      machine.pools.delete(handle);
    },
    cuMemPoolGetAttribute(handle, attribute, out) {
      machine.refuseInCapture();
      readAttribute(machine.pool(handle), attribute, out);
    },
    cuMemPoolSetAttribute(handle, attribute, value) {
      machine.refuseInCapture();
      writeAttribute(machine.pool(handle), attribute, value);
    },
    cuMemPoolTrimTo(handle, keep) {
      const pool = machine.pool(handle);
      machine.refuseInCapture();
      pool.trim(keep);
    },
    cuMemPoolGetAccess(out, handle, location) {
      const pool = machine.pool(handle);
      writeInt(out, pool.access(deviceAt(location).ordinal));
    },
    cuMemPoolSetAccess(handle, map, count) {
      const pool = machine.pool(handle);
      machine.refuseInCapture();
      if (count === 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const { size, at } = struct(CUmemAccessDesc);
      const changes: [ordinal: number, flags: number][] = [];
      for (let i = 0n; i < count; i++) {
        nativeView(map, size);
        const { location, flags } = at(map + i * BigInt(size));
        if (location.type !== CU_MEM_LOCATION_TYPE.DEVICE) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
        const { ordinal } = machine.device(location.id);
        checkAccess(machine, pool, ordinal, flags);
        changes.push([ordinal, flags]);
      }
      for (const [ordinal, flags] of changes) pool.setAccess(ordinal, flags);
    },
    cuDeviceGetDefaultMemPool(out, device) {
      refuseWithoutPools();
      writeWord(out, machine.device(device).defaultPool.handle);
    },
    cuDeviceGetMemPool(out, device) {
      refuseWithoutPools();
      writeWord(out, machine.device(device).currentPool.handle);
    },
    cuDeviceSetMemPool(device, handle) {
      refuseWithoutPools();
      const found = machine.devices[device];
      if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // not INVALID_DEVICE, here
      makeCurrent(found, machine.pool(handle));
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
      makeCurrent(deviceAt(location), machine.pool(handle));
    },
  };
}

function allocate(machine: Machine, out: bigint, size: bigint, pool: Pool, stream: Stream): void {
  nativeView(out, 8);
  if (pool.destroyed || pool.origin !== null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  if (stream.capture !== null) return writeWord(out, captureAllocation(machine, stream, pool, size));
  if (size > 0n) machine.refuseImplicit(stream); // before anything is taken
  machine.refuseInCapture();
  if (size === 0n) return writeWord(out, 0n);
  const device = machine.device(pool.ordinal);
  const block = size > BigInt(device.segments.limit) ? null : take(machine, Number(size), pool, stream);
  if (block === null) throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  const address = addressAt(device, block.offset);
  const { context } = stream;
  const allocation = machine.space.describe({ kind: "pool", address, bytes: Number(size), context, pool, device });
  const map = (): void => {
    device.memory.poison(block.offset, block.bytes);
    device.mapped.add(address, allocation.bytes, allocation);
  };
  machine.enqueueAllocation(stream, map, block.after);
  writeWord(out, address);
}

/** Memory from the pool, in the last resort after waiting for all frees and emptying the other pools. */
function take(machine: Machine, bytes: number, pool: Pool, stream: Stream): PoolBlock | null {
  const impatient = machine.options.schedule === "random" && machine.random.chance(0.25);
  const block = pool.allocate(bytes, stream, impatient);
  if (block !== null) return block;
  for (const context of machine.contexts.values()) {
    for (const task of machine.tails(context)) machine.scheduler.force(task);
  }
  for (const other of machine.pools.values()) if (other.ordinal === pool.ordinal) other.trim(0n);
  return pool.allocate(bytes, stream, impatient);
}

/** Frees memory of a pool: on a stream, or at once. */
export function freeFromPool(machine: Machine, allocation: Allocation, stream: Stream | null = null): void {
  const { address, bytes, device, pool } = allocation;
  if (pool === null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  const offset = offsetOf(address);
  machine.space.known.remove(address);
  const run = () => {
    device.mapped.remove(address);
    if (pool.origin === null) device.memory.poison(offset, Math.ceil(bytes / blockBytes) * blockBytes);
    else device.memory.unalias(offset, bytes);
  };
  // Without a stream nothing is waited for: that all uses are over is the caller's promise.
  const home = stream ?? allocation.context.legacy;
  const task = stream === null ? machine.queue(allocation.context, home.lane, run, []) : machine.enqueue(stream, run);
  if (stream === null) machine.scheduler.force(task);
  if (pool.origin === null) pool.release(offset, bytes, home, task);
}

/** Refuses what cannot be granted: to a device that does not reach the memory, and less than everything to the owner. */
function checkAccess(machine: Machine, pool: Pool, ordinal: number, flags: number): void {
  const { NONE, READ, READWRITE } = CU_MEM_ACCESS_FLAGS_PROT;
  if (flags === READ) throw refuse(CUresult.CUDA_ERROR_NOT_SUPPORTED);
  if (flags !== NONE && flags !== READWRITE) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  if (ordinal === pool.ordinal) {
    if (flags !== READWRITE) throw refuse(CUresult.CUDA_ERROR_INVALID_DEVICE);
  } else if (flags !== NONE && !machine.options.canAccessPeer(ordinal, pool.ordinal)) {
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
