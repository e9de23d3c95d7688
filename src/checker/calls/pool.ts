/**
 * Memory that is allocated and freed in stream order, and pools.
 *
 * @module
 */
import type { DriverGroups } from "../../driver/mod.ts";
import { currentSite } from "../call_site.ts";
import type { CheckerState } from "../checker_state.ts";
import type { CheckedCalls } from "../checked_driver.ts";

/** The calls of the group. */
export function poolCalls(checker: CheckerState, inner: DriverGroups["pool"]): CheckedCalls<"pool"> {
  const allocated = (code: number, out: bigint, size: bigint, handle: bigint, call: string): number => {
    const stream = code === 0 ? checker.stream(handle, call) : null;
    // A graph's memory is allocated by each launch: it is not tracked.
    if (stream !== null && stream.capture === null) {
      checker.allocated(checker.reader.word(out), Number(size), "pool", call, stream);
    }
    return code;
  };
  return {
    cuMemAllocAsync(out, size, handle) {
      checker.stream(handle, "cuMemAllocAsync");
      return allocated(inner.cuMemAllocAsync(out, size, handle), out, size, handle, "cuMemAllocAsync");
    },
    cuMemAllocFromPoolAsync(out, size, pool, handle) {
      const call = "cuMemAllocFromPoolAsync";
      checker.stream(handle, call);
      return allocated(inner.cuMemAllocFromPoolAsync(out, size, pool, handle), out, size, handle, call);
    },
    cuMemFreeAsync(address, handle) {
      const call = "cuMemFreeAsync";
      const stream = checker.stream(handle, call);
      const allocation = stream?.capture === null ? checker.allocationToFree(stream, address, call) : null;
      const code = inner.cuMemFreeAsync(address, handle);
      if (code === 0 && allocation !== null && stream !== null) checker.freeInOrder(stream, call, allocation);
      return code;
    },
    cuMemPoolCreate(out, props) {
      const code = inner.cuMemPoolCreate(out, props);
      if (code === 0) checker.lifetimes.created("pool", checker.reader.word(out), "cuMemPoolCreate");
      return code;
    },
    cuMemPoolDestroy(handle) {
      const code = inner.cuMemPoolDestroy(handle);
      if (code === 0) checker.lifetimes.destroyed("pool", handle, "cuMemPoolDestroy");
      return code;
    },
  };
}

/** Bytes of the name that a driver gives to memory shared with other processes. */
const nameBytes = 64;

function nameOf(bytes: Uint8Array): string {
  return bytes.toHex();
}

function nameAt(checker: CheckerState, address: bigint): string {
  const { buffer, byteOffset } = checker.reader.at(address, nameBytes);
  return nameOf(new Uint8Array(buffer, byteOffset, nameBytes));
}

/** The calls for pools of other processes. */
export function poolSharingCalls(
  checker: CheckerState,
  inner: DriverGroups["poolSharing"],
): CheckedCalls<"poolSharing"> {
  return {
    cuMemPoolImportFromShareableHandle(out, handle, type, flags) {
      const call = "cuMemPoolImportFromShareableHandle";
      const code = inner.cuMemPoolImportFromShareableHandle(out, handle, type, flags);
      if (code === 0) checker.lifetimes.created("pool", checker.reader.word(out), call);
      return code;
    },
    cuMemPoolImportPointer(out, pool, data) {
      const code = inner.cuMemPoolImportPointer(out, pool, data);
      if (code === 0) checker.imported(checker.reader.word(out), "cuMemPoolImportPointer", nameAt(checker, data));
      return code;
    },
    cuMemPoolExportPointer(out, address) {
      const code = inner.cuMemPoolExportPointer(out, address);
      if (code === 0) checker.exported(address, nameAt(checker, out));
      return code;
    },
  };
}

/**
 * The calls for memory and events of other processes. Records by other processes are not seen: a wait counts as one for
 * everything.
 */
export function ipcCalls(checker: CheckerState, inner: DriverGroups["ipc"]): CheckedCalls<"ipc"> {
  return {
    cuIpcOpenMemHandle_v2(out, handle, flags) {
      const code = inner.cuIpcOpenMemHandle_v2(out, handle, flags);
      if (code === 0) checker.imported(checker.reader.word(out), "cuIpcOpenMemHandle_v2", nameOf(handle));
      return code;
    },
    cuIpcCloseMemHandle(address) {
      const allocation = checker.allocationToFree(null, address, "cuIpcCloseMemHandle");
      const code = inner.cuIpcCloseMemHandle(address);
      if (code !== 0 || allocation === null || --allocation.opened > 0) return code;
      checker.freed(allocation, "cuIpcCloseMemHandle", "host", currentSite(), 0);
      return code;
    },
    cuIpcGetMemHandle(out, address) {
      const code = inner.cuIpcGetMemHandle(out, address);
      if (code === 0) checker.exported(address, nameAt(checker, out));
      return code;
    },
    cuIpcGetEventHandle(out, event) {
      const code = inner.cuIpcGetEventHandle(out, event);
      if (code === 0) checker.shareEvent(event);
      return code;
    },
    cuIpcOpenEventHandle(out, handle) {
      const code = inner.cuIpcOpenEventHandle(out, handle);
      if (code !== 0) return code;
      const event = checker.reader.word(out);
      checker.lifetimes.created("event", event, "cuIpcOpenEventHandle");
      checker.shareEvent(event);
      return code;
    },
  };
}
