/**
 * Memory and events of other processes, which are other simulated drivers in this process.
 *
 * @module
 */
import { CU_EVENT, CU_IPC_MEM, CU_MEM_HANDLE_TYPE, CUresult } from "../../../bindings/cuda_types.ts";
import { addressAt, offsetOf } from "../address_space.ts";
import { type CallTable, refuse, unsimulated } from "../call.ts";
import type { Simulator } from "../simulator.ts";
import { nativeView, writeInt, writeWord } from "../out_parameters.ts";
import type { Allocation } from "../objects.ts";
import type { Pool } from "../pool.ts";
import { find, fromFile, fromHandle, handleBytes, share, toFile, toHandle } from "../ipc_objects.ts";
import { newEvent } from "./event.ts";

function writeHandle(out: bigint, name: string): void {
  new Uint8Array(nativeView(out, handleBytes).buffer).set(toHandle(name));
}

/** Maps another driver's memory into this one's addresses. Writes of its owner are visible here. */
function importAllocation(
  simulator: Simulator,
  theirs: Allocation,
  kind: "pool" | "opened",
  pool: Pool | null,
): Allocation {
  const context = simulator.current();
  const device = simulator.device(theirs.device.ordinal);
  const offset = device.memory.alias(theirs.device.memory, offsetOf(theirs.address), theirs.bytes);
  const { bytes } = theirs;
  const ours = simulator.space.add({ kind, address: addressAt(device, offset), bytes, context, pool, device });
  device.mapped.add(ours.address, bytes, ours);
  return ours;
}

/** The calls for pools. */
export function poolSharingCalls(simulator: Simulator): CallTable<"poolSharing"> {
  /**
   * Imported allocations by origin: importing one again returns the same address, and freeing it once ends both.
   */
  const imported = new WeakMap<Allocation, Allocation>();
  /** Exported pools; libcuda exports pointers to memory of no others. */
  const exported = new WeakSet<Pool>();
  const fileOnly = (type: number): void => {
    if (type === CU_MEM_HANDLE_TYPE.FABRIC) throw unsimulated("pools for other machines");
    if (type !== CU_MEM_HANDLE_TYPE.POSIX_FILE_DESCRIPTOR) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  };
  return {
    cuMemPoolExportToShareableHandle(out, handle, type, flags) {
      fileOnly(type);
      const pool = simulator.pool(handle);
      if (!pool.isShareable || flags !== 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      nativeView(out, 4);
      writeInt(out, toFile(share({ simulator, kind: "pool", pool })));
      exported.add(pool);
    },
    cuMemPoolImportFromShareableHandle(out, handle, type, flags) {
      fileOnly(type);
      nativeView(out, 8);
      if (flags !== 0n) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const { pool: origin } = find(fromFile(Number(handle)), "pool");
      if (origin.destroyed) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const { ordinal, segments } = simulator.device(origin.ordinal);
      const before = [...simulator.pools.values()].find((one) => one.origin === origin);
      // A process has one pool per origin, however often it is imported.
      const pool = before ?? simulator.newPool(ordinal, segments, false, 0);
      pool.origin = origin;
      pool.imports++;
      writeWord(out, pool.handle);
    },
    cuMemPoolExportPointer(out, address) {
      const allocation = simulator.space.at(address);
      if (allocation?.kind !== "pool" || allocation.pool === null || !exported.has(allocation.pool)) {
        throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      }
      writeHandle(out, share({ simulator, kind: "pool memory", allocation }));
    },
    cuMemPoolImportPointer(out, handle, data) {
      nativeView(out, 8);
      const pool = simulator.pool(handle);
      const name = fromHandle(new Uint8Array(nativeView(data, handleBytes).buffer));
      const { allocation: theirs, simulator: owner } = find(name, "pool memory");
      if (pool.origin !== theirs.pool) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (owner.space.at(theirs.address) !== theirs) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // freed
      const before = imported.get(theirs);
      const ours = before !== undefined && simulator.space.at(before.address) === before
        ? before
        : importAllocation(simulator, theirs, "pool", pool);
      imported.set(theirs, ours);
      writeWord(out, ours.address);
    },
  };
}

// law sim/ipcCalls: sim/sharing
/** The calls for memory outside pools, and for events. */
export function ipcCalls(simulator: Simulator): CallTable<"ipc"> {
  /** Open allocations, and how often each was opened. */
  const opened = new Map<Allocation, { readonly ours: Allocation; count: number }>();
  return {
    cuIpcGetMemHandle(out, address) {
      simulator.current();
      const allocation = simulator.space.at(address);
      if (allocation?.kind !== "device") throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      writeHandle(out, share({ simulator, kind: "memory", allocation }));
    },
    cuIpcOpenMemHandle_v2(out, handle, flags) {
      const context = simulator.current();
      nativeView(out, 8);
      if (flags !== CU_IPC_MEM.LAZY_ENABLE_PEER_ACCESS) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      const { allocation: theirs, simulator: owner } = find(fromHandle(handle), "memory");
      if (owner === simulator) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
      if (owner.space.at(theirs.address) !== theirs) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // freed
      const before = opened.get(theirs);
      const isOpen = before !== undefined && simulator.space.at(before.ours.address) === before.ours;
      if (isOpen && before.ours.context !== context) throw refuse(CUresult.CUDA_ERROR_ALREADY_MAPPED);
      const entry = isOpen ? before : { ours: importAllocation(simulator, theirs, "opened", null), count: 0 };
      entry.count++;
      opened.set(theirs, entry);
      writeWord(out, entry.ours.address);
    },
    cuIpcCloseMemHandle(address) {
      simulator.current();
      const found = [...opened].find(([, { ours }]) => ours === simulator.space.at(address));
      if (found === undefined) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE); // also if it ended with its context
      const [theirs, entry] = found;
      if (--entry.count > 0) return;
      simulator.waitBeforeFree();
      opened.delete(theirs);
      simulator.free(entry.ours);
    },
    cuIpcGetEventHandle(out, handle) {
      const event = simulator.event(handle);
      if ((event.flags & CU_EVENT.INTERPROCESS) === 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      writeHandle(out, share({ simulator, kind: "event", event }));
    },
    cuIpcOpenEventHandle(out, handle) {
      const context = simulator.current();
      nativeView(out, 8);
      const { event, simulator: owner } = find(fromHandle(handle), "event");
      if (owner === simulator) throw refuse(CUresult.CUDA_ERROR_INVALID_CONTEXT);
      if (owner.events.get(event.handle) !== event) throw refuse(CUresult.CUDA_ERROR_INVALID_HANDLE); // destroyed
      writeWord(out, newEvent(simulator, context, event.flags, event.shared).handle);
    },
  };
}
