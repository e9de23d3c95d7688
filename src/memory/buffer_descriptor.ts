/**
 * Descriptors of device memory that one process makes for another.
 *
 * @module
 */
import { type CudaDevice, handleBytes, type IpcHandle, writeHandle } from "../device/mod.ts";
import { checkCuda } from "../driver/mod.ts";
import { NativeArena } from "../ffi/mod.ts";
import type { MemoryPool } from "./memory_pool.ts";

/**
 * What another process needs to import a buffer: a small plain object that survives JSON, `structuredClone` and any
 * wire. It does not say when the bytes are ready: see {@linkcode MemoryBuffer.exportDescriptor}.
 */
export interface BufferDescriptor extends IpcHandle {
  /** `pool memory` is imported through its pool, `memory` by any `SynchronousMemoryResource` of the device. */
  readonly kind: "pool memory" | "memory";
  /** Bytes. */
  readonly size: number;
  /** Bytes from the start of the memory that the handle describes. */
  readonly offset: number;
}

/** Describes memory of a pool that can be shared. */
function describePoolMemory(device: CudaDevice, ptr: bigint, size: number): BufferDescriptor {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(handleBytes);
  const { driver } = device;
  if (size > 0) {
    const code = device.withContext(() => driver.poolSharing.cuMemPoolExportPointer(address, ptr));
    checkCuda(driver, "cuMemPoolExportPointer", code);
  }
  return descriptor("pool memory", device, bytes, size, 0);
}

/** Describes memory that was allocated without a pool, ours or another library's. */
export function describeMemory(device: CudaDevice, ptr: bigint, size: number): BufferDescriptor {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(handleBytes);
  const base = arena.out("ptr");
  base.value = ptr;
  const { driver } = device;
  if (size > 0) {
    device.withContext(() => {
      const range = driver.pointer.cuMemGetAddressRange_v2(base.$address, 0n, ptr);
      checkCuda(driver, "cuMemGetAddressRange_v2", range);
      checkCuda(driver, "cuIpcGetMemHandle", driver.ipc.cuIpcGetMemHandle(address, base.value));
    });
  }
  return descriptor("memory", device, bytes, size, Number(ptr - base.value));
}

function descriptor(
  kind: BufferDescriptor["kind"],
  device: CudaDevice,
  bytes: Uint8Array,
  size: number,
  offset: number,
): BufferDescriptor {
  return { ...writeHandle(kind, device, bytes), kind, size, offset };
}

/** The function that describes memory of a pool of this process. */
export function describerOf(pool: MemoryPool): (ptr: bigint, size: number) => BufferDescriptor {
  if (pool.isShareable) {
    return (ptr, size) => {
      pool.ensureExported();
      return describePoolMemory(pool.device, ptr, size);
    };
  }
  return () => {
    throw new TypeError("Cannot export memory of this pool: allocate from a pool made with { shareable: true }");
  };
}
