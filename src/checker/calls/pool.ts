/**
 * Memory that is allocated and freed in stream order, and pools.
 *
 * @module
 */
import type { DriverGroups } from "../../driver/driver.ts";
import { here } from "../call_site.ts";
import type { Watch } from "../checker_state.ts";
import type { Watched } from "./calls.ts";

/** The calls of the group. */
export function poolCalls(watch: Watch, inner: DriverGroups["pool"]): Watched<"pool"> {
  const allocated = (code: number, out: bigint, size: bigint, stream: bigint, call: string): number => {
    const lane = code === 0 ? watch.lane(stream, call) : null;
    // What a graph allocates lives from launch to launch: it is not followed.
    if (lane !== null && lane.capture === null) watch.allocate(watch.peek.word(out), Number(size), "pool", call, lane);
    return code;
  };
  return {
    cuMemAllocAsync(out, size, stream) {
      watch.lane(stream, "cuMemAllocAsync");
      return allocated(inner.cuMemAllocAsync(out, size, stream), out, size, stream, "cuMemAllocAsync");
    },
    cuMemAllocFromPoolAsync(out, size, pool, stream) {
      const call = "cuMemAllocFromPoolAsync";
      watch.lane(stream, call);
      return allocated(inner.cuMemAllocFromPoolAsync(out, size, pool, stream), out, size, stream, call);
    },
    cuMemFreeAsync(address, stream) {
      const call = "cuMemFreeAsync";
      const lane = watch.lane(stream, call);
      const known = lane?.capture === null ? watch.freeing(lane, address, call) : null;
      const code = inner.cuMemFreeAsync(address, stream);
      if (code === 0 && known !== null && lane !== null) watch.freeInOrder(lane, call, known);
      return code;
    },
    cuMemPoolCreate(out, props) {
      const code = inner.cuMemPoolCreate(out, props);
      if (code === 0) watch.things.made("pool", watch.peek.word(out), "cuMemPoolCreate");
      return code;
    },
    cuMemPoolDestroy(handle) {
      const code = inner.cuMemPoolDestroy(handle);
      if (code === 0) watch.things.destroyed("pool", handle, "cuMemPoolDestroy");
      return code;
    },
  };
}

/** Bytes of what a driver calls memory that other processes may have. */
const nameBytes = 64;

function nameOf(bytes: Uint8Array): string {
  return bytes.toHex();
}

function nameAt(watch: Watch, address: bigint): string {
  const { buffer, byteOffset } = watch.peek.at(address, nameBytes);
  return nameOf(new Uint8Array(buffer, byteOffset, nameBytes));
}

/** The calls for pools of other processes. */
export function poolSharingCalls(watch: Watch, inner: DriverGroups["poolSharing"]): Watched<"poolSharing"> {
  return {
    cuMemPoolImportFromShareableHandle(out, handle, type, flags) {
      const call = "cuMemPoolImportFromShareableHandle";
      const code = inner.cuMemPoolImportFromShareableHandle(out, handle, type, flags);
      if (code === 0) watch.things.made("pool", watch.peek.word(out), call);
      return code;
    },
    cuMemPoolImportPointer(out, pool, data) {
      const code = inner.cuMemPoolImportPointer(out, pool, data);
      if (code === 0) watch.imported(watch.peek.word(out), "cuMemPoolImportPointer", nameAt(watch, data));
      return code;
    },
    cuMemPoolExportPointer(out, address) {
      const code = inner.cuMemPoolExportPointer(out, address);
      if (code === 0) watch.exported(address, nameAt(watch, out));
      return code;
    },
  };
}

/** The calls for memory and events of other processes. What is recorded there is not seen: waits for it are for everything. */
export function ipcCalls(watch: Watch, inner: DriverGroups["ipc"]): Watched<"ipc"> {
  return {
    cuIpcOpenMemHandle_v2(out, handle, flags) {
      const code = inner.cuIpcOpenMemHandle_v2(out, handle, flags);
      if (code === 0) watch.imported(watch.peek.word(out), "cuIpcOpenMemHandle_v2", nameOf(handle));
      return code;
    },
    cuIpcCloseMemHandle(address) {
      const known = watch.freeing(null, address, "cuIpcCloseMemHandle");
      const code = inner.cuIpcCloseMemHandle(address);
      if (code !== 0 || known === null || --known.opened > 0) return code;
      watch.free(known, "cuIpcCloseMemHandle", "host", here(), 0);
      return code;
    },
    cuIpcGetMemHandle(out, address) {
      const code = inner.cuIpcGetMemHandle(out, address);
      if (code === 0) watch.exported(address, nameAt(watch, out));
      return code;
    },
    cuIpcGetEventHandle(out, event) {
      const code = inner.cuIpcGetEventHandle(out, event);
      if (code === 0) watch.shareEvent(event);
      return code;
    },
    cuIpcOpenEventHandle(out, handle) {
      const code = inner.cuIpcOpenEventHandle(out, handle);
      if (code !== 0) return code;
      const event = watch.peek.word(out);
      watch.things.made("event", event, "cuIpcOpenEventHandle");
      watch.shareEvent(event);
      return code;
    },
  };
}
