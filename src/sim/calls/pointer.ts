/**
 * What the driver knows about an address.
 *
 * @module
 */
import { CU_DEVICE_INVALID, CU_MEMORYTYPE, CU_POINTER_ATTRIBUTE, CUresult } from "../../../bindings/cuda_types.ts";
import { type CallTable, refuse } from "../call.ts";
import { spanOfAddress } from "../device_memory.ts";
import type { Simulator } from "../simulator.ts";
import { nativeView, readInt, readWord, writeInt, writeUint, writeWord } from "../out_parameters.ts";
import type { Allocation } from "../objects.ts";

/** The calls of the group. */
export function pointerCalls(simulator: Simulator): CallTable<"pointer"> {
  /** The allocation at an address: graph memory counts only from a launch to its free. */
  const find = (address: bigint): Allocation | undefined => {
    const allocation = simulator.space.allocations.find(address);
    if (allocation?.kind !== "graph") return allocation;
    return simulator.graphMemory.get(allocation.address)?.isLive === true ? allocation : undefined;
  };
  return {
    cuPointerGetAttribute(out, attribute, address) {
      nativeView(out, 1);
      const allocation = find(address);
      if (allocation === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (!write(out, attribute, allocation, address)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    },
    cuPointerGetAttributes(n, attributes, outs, address) {
      const allocation = find(address);
      for (let i = 0n; i < BigInt(n); i++) {
        const attribute = readInt(attributes + i * 4n);
        const out = readWord(outs + i * 8n);
        if (allocation !== undefined && write(out, attribute, allocation, address)) continue;
        if (attribute === CU_POINTER_ATTRIBUTE.HOST_POINTER && spanOfAddress(address) === null) {
          writeWord(out, address);
        } else writeNothing(out, attribute);
      }
    },
    cuPointerSetAttribute(value, attribute, address) {
      const allocation = simulator.space.allocations.find(address);
      if (
        attribute !== CU_POINTER_ATTRIBUTE.SYNC_MEMOPS || allocation === undefined || spanOfAddress(address) === null
      ) {
        throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      }
      allocation.syncMemops = readInt(value) !== 0;
    },
    cuMemGetAddressRange_v2(base, size, address) {
      simulator.current();
      const allocation = simulator.space.allocations.find(address);
      if (allocation === undefined) throw refuse(CUresult.CUDA_ERROR_NOT_FOUND);
      if (base !== 0n) writeWord(base, allocation.address);
      if (size !== 0n) writeWord(size, BigInt(allocation.bytes));
    },
  };
}

/** Writes an attribute; false if the allocation has no such attribute. */
function write(out: bigint, attribute: number, allocation: Allocation, address: bigint): boolean {
  const { kind, pool } = allocation;
  const onHost = kind === "pinned" || kind === "registered";
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE.CONTEXT:
      writeWord(out, pool === null ? allocation.context.handle : 0n);
      return true;
    case CU_POINTER_ATTRIBUTE.MEMORY_TYPE:
      writeUint(out, onHost ? CU_MEMORYTYPE.HOST : CU_MEMORYTYPE.DEVICE);
      return true;
    case CU_POINTER_ATTRIBUTE.DEVICE_POINTER:
      writeWord(out, address);
      return true;
    case CU_POINTER_ATTRIBUTE.HOST_POINTER:
      if (spanOfAddress(address) !== null) return false;
      writeWord(out, address);
      return true;
    case CU_POINTER_ATTRIBUTE.SYNC_MEMOPS:
      writeInt(out, Number(allocation.syncMemops || kind === "managed"));
      return true;
    case CU_POINTER_ATTRIBUTE.BUFFER_ID:
      writeWord(out, allocation.id);
      return true;
    case CU_POINTER_ATTRIBUTE.IS_MANAGED:
      writeInt(out, Number(kind === "managed"));
      return true;
    case CU_POINTER_ATTRIBUTE.DEVICE_ORDINAL:
      writeInt(out, allocation.device.ordinal);
      return true;
    case CU_POINTER_ATTRIBUTE.IS_LEGACY_CUDA_IPC_CAPABLE:
      writeInt(out, Number(kind === "device"));
      return true;
    case CU_POINTER_ATTRIBUTE.RANGE_START_ADDR:
      writeWord(out, allocation.address);
      return true;
    case CU_POINTER_ATTRIBUTE.RANGE_SIZE:
      writeWord(out, BigInt(allocation.bytes));
      return true;
    case CU_POINTER_ATTRIBUTE.MAPPED:
      writeInt(out, 1);
      return true;
    case CU_POINTER_ATTRIBUTE.ALLOWED_HANDLE_TYPES:
      writeWord(out, 0n);
      return true;
    case CU_POINTER_ATTRIBUTE.ACCESS_FLAGS:
      writeInt(out, 3);
      return true;
    case CU_POINTER_ATTRIBUTE.MEMPOOL_HANDLE:
      writeWord(out, kind === "pool" ? pool?.handle ?? 0n : 0n); // graph memory names no pool
      return true;
    default:
      return false;
  }
}

/** Writes what the call for a list of attributes reports for an address unknown to the driver. */
function writeNothing(out: bigint, attribute: number): void {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE.DEVICE_ORDINAL:
      return writeInt(out, CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE.MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE.SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE.IS_MANAGED:
    case CU_POINTER_ATTRIBUTE.IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE.MAPPED:
    case CU_POINTER_ATTRIBUTE.ACCESS_FLAGS:
      return writeInt(out, 0);
    default:
      return writeWord(out, 0n);
  }
}
