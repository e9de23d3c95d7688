/**
 * A CUDA driver that runs every call synchronously, in host memory, and records the calls that matter for order. It
 * shows which calls are made and in which sequence, not what they would do on a GPU.
 *
 * @module
 */
import { cuda } from "../../bindings/cuda.ts";
import { DeviceMemoryResource } from "../../src/memory/device_memory_resource.ts";
import { CudaDevice } from "../../src/device/device.ts";
import type { CudaDriver } from "../../src/driver/driver.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";

/** Calls that are recorded; pushing and popping contexts, and queries, are not. */
const noted = new Set([
  "cuStreamCreate",
  "cuStreamWaitEvent",
  "cuStreamSynchronize",
  "cuEventRecord",
  "cuEventSynchronize",
  "cuCtxRecordEvent",
  "cuCtxSynchronize",
  "cuMemAllocFromPoolAsync",
  "cuMemFreeAsync",
  "cuMemcpyHtoDAsync_v2",
  "cuMemcpyDtoHAsync_v2",
  "cuMemcpyDtoDAsync_v2",
]);

/** Options of {@linkcode recordingDevice}. */
export interface RecordingOptions {
  /** Functions that this driver lacks, as an older one does. */
  readonly without?: readonly string[];
}

/** A device of a recording driver, and its log: the function and its arguments. */
export function recordingDevice(options: RecordingOptions = {}): { device: CudaDevice; log: string[] } {
  const log: string[] = [];
  let handles = 0x1000n;
  const write = (address: bigint, value: bigint) =>
    new DataView(ffiPort().memory(address, 8)).setBigUint64(0, value, true);

  const behave: Record<string, (...args: bigint[]) => void> = {
    cuDevicePrimaryCtxRetain: (out = 0n) => write(out, 0xc0n),
    cuStreamCreate: (out = 0n) => write(out, handles += 0x10n),
    cuEventCreate: (out = 0n) => write(out, handles += 0x10n),
    cuDeviceGetAttribute: (out = 0n) => new DataView(ffiPort().memory(out, 4)).setInt32(0, 1, true), // has memory pools
    cuMemAllocFromPoolAsync: (out = 0n, size = 0n) => write(out, libc().loading.malloc(size)),
    cuMemFreeAsync: (ptr = 0n) => libc().loading.free(ptr),
    cuMemcpyHtoDAsync_v2: copy,
    cuMemcpyDtoHAsync_v2: copy,
    cuMemcpyDtoDAsync_v2: copy,
  };
  const groups = Object.entries(cuda).map(([group, functions]) => {
    const members = Object.keys(functions).map((name) => {
      if (options.without?.includes(name)) return [name, null] as const;
      const call = (...args: bigint[]) => {
        behave[name]?.(...args);
        if (noted.has(name)) log.push(`${name}(${args.map(String).join(", ")})`);
        return 0; // CUDA_SUCCESS
      };
      return [name, call] as const;
    });
    return [group, Object.fromEntries(members)] as const;
  });
  // One function per symbol of the table, which is what the type says.
  const driver = Object.fromEntries(groups) as unknown as CudaDriver;
  return { device: new CudaDevice(driver, 0, [], (device) => new DeviceMemoryResource(device)), log };
}

function copy(to = 0n, from = 0n, size = 0n): void {
  libc().memory.memmove(to, from, size);
}
