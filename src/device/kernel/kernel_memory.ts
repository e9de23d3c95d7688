/**
 * Memory as a kernel argument: whether the kernel's device can reach it, and what keeps it allocated.
 *
 * @module
 */
import {
  CU_MEM_ACCESS_FLAGS_PROT,
  CU_MEM_LOCATION_TYPE,
  CU_POINTER_ATTRIBUTE,
  CUmemLocation,
} from "../../../bindings/cuda_types.ts";
import { NativeArena } from "../../ffi/mod.ts";
import { isSameDevice } from "../check_device.ts";
import type { StreamCapture } from "../graph/capture.ts";
import type { CudaDevice } from "../device.ts";
import { checkCuda } from "../../driver/mod.ts";
import type { CudaStream } from "../stream.ts";

/** Memory that can be passed to a kernel: a buffer, a view, or anything else with an address. */
export interface KernelMemory {
  /** Address of the first byte. */
  readonly ptr: bigint;
  /** The buffer behind a view. */
  readonly buffer?: KernelMemory;
  /** The device whose memory it is; null for host memory; omitted if not known, and then not checked. */
  readonly device?: CudaDevice | null;
  /** The device whose driver knows it, if it is pinned host memory, too. Default `device`. */
  readonly driven?: CudaDevice | null;
  /** Whether kernels can use it. Default true. */
  readonly isDeviceAccessible?: boolean;
  /** The stream on which it is freed. */
  readonly stream?: CudaStream | null;
  /** Pins it until the result is disposed. */
  pinned?(): Disposable;
}

/**
 * Throws unless kernels of a device can use memory.
 *
 * @throws {TypeError} whose message begins with what was expected
 */
export function checkReachable(memory: KernelMemory, device: CudaDevice): void {
  const { device: owner, driven = owner, isDeviceAccessible = true } = memory.buffer ?? memory;
  if (!isDeviceAccessible) {
    throw new TypeError(`expected memory that kernels can use, got host memory. Copy it to the device first.`);
  }
  if (driven !== undefined && driven !== null && driven.driver !== device.driver) {
    throw new TypeError(`expected memory of the kernel's own Cuda, got memory of another one`);
  }
  if (owner === undefined || owner === null || isSameDevice(owner, device)) return;
  if (!hasAccess(memory.ptr, device)) {
    throw new TypeError(
      `expected memory that ${device} can reach, got memory of ${owner}. ` +
        "Give access with peerAccessibleBy of its memory resource, or copy it; where peer access was enabled by other means, " +
        "pass the address itself.",
    );
  }
}

// law device/hasAccess: device/kernel/kernel_arguments
/**
 * Whether a device has access to another device's memory: every device has access to managed memory, and the devices
 * that were granted it to memory of a pool. All other memory is accessible only to its owner.
 */
function hasAccess(ptr: bigint, device: CudaDevice): boolean {
  if (ptr === 0n) return true; // an empty view
  const { driver, ordinal } = device;
  using arena = new NativeArena();
  const [managed, pool] = [arena.out("u64"), arena.out("ptr")];
  const { IS_MANAGED, MEMPOOL_HANDLE } = CU_POINTER_ATTRIBUTE;
  const ask = (out: bigint, attribute: number) => {
    const call = () => driver.pointer.cuPointerGetAttribute(out, attribute, ptr);
    checkCuda(driver, "cuPointerGetAttribute", device.withContext(call));
  };
  ask(managed.$address, IS_MANAGED);
  if (managed.value !== 0n) return true;
  ask(pool.$address, MEMPOOL_HANDLE);
  if (pool.value === 0n) return false;
  const [location, flags] = [arena.struct(CUmemLocation), arena.out("i32")];
  location.type = CU_MEM_LOCATION_TYPE.DEVICE;
  location.id = ordinal;
  const code = driver.pool.cuMemPoolGetAccess(flags.$address, pool.value, location.$address);
  checkCuda(driver, "cuMemPoolGetAccess", code);
  return flags.value === CU_MEM_ACCESS_FLAGS_PROT.READWRITE;
}

/** Pins memory as long as captured work that uses it exists. */
export function pinWithCapture(memory: KernelMemory, capture: StreamCapture): void {
  const owner = memory.buffer ?? memory;
  const pin = owner.pinned?.();
  if (pin !== undefined) capture.retain({ home: () => owner.stream ?? null, retained: pin });
}
