/**
 * Memory that is allocated and freed immediately: device, host and managed memory.
 *
 * @module
 */
import {
  CU_DEVICE_CPU,
  CU_MEM_ADVISE,
  CU_MEM_ATTACH,
  CU_MEMHOSTALLOC,
  CU_MEMHOSTREGISTER,
  CUresult,
} from "../../../bindings/cuda_types.ts";
import { roundUp } from "../../ffi/mod.ts";
import { type CallTable, checkConstant, checkFlags, refuse } from "../call.ts";
import { freeGraphMemory } from "../graph_memory.ts";
import type { Simulator } from "../simulator.ts";
import { nativeView, writeUint, writeWord } from "../out_parameters.ts";
import type { Allocation } from "../objects.ts";
import { freeFromPool } from "./pool.ts";

/** The calls for device memory. */
export function memoryCalls(simulator: Simulator): CallTable<"memory"> {
  const allocate = (out: bigint, size: bigint): void => {
    const context = simulator.current();
    simulator.refuseInCapture();
    nativeView(out, 8); // before any memory is taken
    if (size === 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    const allocation = size > BigInt(context.device.segments.limit)
      ? null
      : simulator.space.allocateDevice(context, Number(size));
    if (allocation === null) throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    writeWord(out, allocation.address);
  };
  return {
    cuMemAlloc_v2: allocate,
    cuMemFree_v2(address) {
      simulator.current();
      simulator.refuseInCapture();
      if (address === 0n) return;
      const allocation = simulator.space.at(address);
      if (allocation?.kind === "pool") return freeFromPool(simulator, allocation);
      if (allocation?.kind === "graph") return freeGraphMemory(simulator, allocation);
      if (allocation?.kind !== "device" && allocation?.kind !== "managed") {
        throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      }
      simulator.waitBeforeFree();
      simulator.free(allocation);
    },
    cuMemAllocPitch_v2(out, pitchOut, width, height, elementBytes) {
      if (![4, 8, 16].includes(elementBytes) || width === 0n || height === 0n) {
        throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      }
      const pitch = (width + 511n) / 512n * 512n;
      nativeView(pitchOut, 8);
      allocate(out, pitch * height);
      writeWord(pitchOut, pitch);
    },
    cuMemGetInfo_v2(free, total) {
      const { segments } = simulator.current().device;
      writeWord(free, BigInt(segments.limit - segments.reserved));
      writeWord(total, BigInt(segments.limit));
    },
  };
}

/** The calls for page-locked host memory. */
export function hostMemoryCalls(simulator: Simulator): CallTable<"hostMemory"> {
  const allocate = (out: bigint, size: bigint, flags: number): void => {
    const context = simulator.current();
    simulator.refuseInCapture();
    nativeView(out, 8); // before any memory is taken
    checkFlags(flags, CU_MEMHOSTALLOC);
    if (size === 0n) return writeWord(out, 0n);
    const bytes = Number(size);
    const allocation = Number.isSafeInteger(bytes)
      ? simulator.space.allocateHost(context, "pinned", bytes, flags)
      : null;
    if (allocation === null) throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    writeWord(out, allocation.address);
  };
  const pinned = (address: bigint): Allocation => {
    simulator.current();
    const allocation = simulator.space.allocations.find(address);
    if (allocation?.kind !== "pinned" && allocation?.kind !== "registered") {
      throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    }
    return allocation;
  };
  return {
    cuMemHostAlloc: allocate,
    cuMemAllocHost_v2: (out, size) => allocate(out, size, 0),
    cuMemFreeHost(address) {
      simulator.current();
      simulator.refuseInCapture();
      if (address === 0n) return;
      const allocation = simulator.space.at(address);
      if (allocation?.kind !== "pinned") throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      simulator.waitBeforeFree();
      simulator.free(allocation);
    },
    cuMemHostRegister_v2(address, size, flags) {
      const context = simulator.current();
      simulator.refuseInCapture();
      const bytes = Number(size);
      if (address === 0n || size === 0n || !Number.isSafeInteger(bytes)) {
        throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      }
      checkFlags(flags, CU_MEMHOSTREGISTER);
      const { space } = simulator;
      if (space.allocations.find(address)?.kind === "pinned") throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (space.allocations.overlaps(address, bytes)) throw refuse(CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
      space.add({ kind: "registered", address, bytes, context, flags });
    },
    cuMemHostUnregister(address) {
      simulator.current();
      simulator.refuseInCapture();
      const allocation = simulator.space.allocations.find(address);
      if (allocation?.kind !== "registered") throw refuse(CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
      if (allocation.address !== address) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      simulator.waitBeforeFree();
      simulator.free(allocation);
    },
    cuMemHostGetDevicePointer_v2(out, address, flags) {
      if (flags !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      pinned(address);
      writeWord(out, address);
    },
    // With unified addressing all such memory is portable and mapped, whatever was requested.
    cuMemHostGetFlags(out, address) {
      const { flags } = pinned(address);
      writeUint(out, flags | CU_MEMHOSTALLOC.DEVICEMAP);
    },
  };
}

/** The calls for managed memory. Here it is host memory: migration is not simulated, only access rights. */
export function managedMemoryCalls(simulator: Simulator): CallTable<"managedMemory"> {
  const managed = (address: bigint, count: bigint): Allocation => {
    const allocation = count === 0n ? null : simulator.space.range(address, Number(count));
    if (allocation?.kind !== "managed") throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    return allocation;
  };
  const place = (device: number): void => {
    if (device !== CU_DEVICE_CPU) simulator.device(device);
  };
  return {
    cuMemAllocManaged(out, size, flags) {
      const context = simulator.current();
      simulator.refuseInCapture();
      nativeView(out, 8); // before any memory is taken
      const bytes = Number(size);
      if (size === 0n || (flags !== CU_MEM_ATTACH.GLOBAL && flags !== CU_MEM_ATTACH.HOST)) {
        throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      }
      const fits = Number.isSafeInteger(roundUp(bytes, 4096));
      const allocation = fits ? simulator.space.allocateHost(context, "managed", bytes, flags) : null;
      if (allocation === null) throw refuse(CUresult.CUDA_ERROR_OUT_OF_MEMORY);
      writeWord(out, allocation.address);
    },
    cuMemAdvise(address, count, advice, device) {
      simulator.current();
      checkConstant(advice, CU_MEM_ADVISE);
      managed(address, count);
      if (advice !== CU_MEM_ADVISE.SET_READ_MOSTLY && advice !== CU_MEM_ADVISE.UNSET_READ_MOSTLY) place(device);
    },
    cuMemPrefetchAsync(address, count, device, stream) {
      const target = simulator.stream(stream);
      simulator.refuseCapturing(target);
      managed(address, count);
      place(device);
      simulator.submit(target, "uncapturable", () => {}); // moves no bytes here, but takes its place in stream order
    },
  };
}
