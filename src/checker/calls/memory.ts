/**
 * Memory that is allocated and freed immediately.
 *
 * @module
 */
import { CU_POINTER_ATTRIBUTE } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/mod.ts";
import { currentSite } from "../call_site.ts";
import type { CheckerState } from "../checker_state.ts";
import type { CheckedCalls } from "../checked_driver.ts";

/** The calls for device memory. */
export function memoryCalls(checker: CheckerState, inner: DriverGroups["memory"]): CheckedCalls<"memory"> {
  return {
    cuMemAlloc_v2(out, size) {
      const code = inner.cuMemAlloc_v2(out, size);
      if (code === 0) checker.allocated(checker.reader.word(out), Number(size), "device", "cuMemAlloc_v2", null);
      return code;
    },
    cuMemAllocPitch_v2(out, pitchOut, width, height, elementBytes) {
      const code = inner.cuMemAllocPitch_v2(out, pitchOut, width, height, elementBytes);
      if (code !== 0) return code;
      const bytes = Number(checker.reader.word(pitchOut) * height);
      checker.allocated(checker.reader.word(out), bytes, "device", "cuMemAllocPitch_v2", null);
      return code;
    },
    cuMemFree_v2: (address) => freeNow(checker, address, "cuMemFree_v2", () => inner.cuMemFree_v2(address)),
  };
}

/**
 * Frees memory immediately. CUDA documents that pool memory must no longer be in use. Drivers mostly free other memory
 * only when its uses have completed, though that is not documented: relying on it is not reported, and it does not
 * count as a wait.
 */
function freeNow(checker: CheckerState, address: bigint, call: string, perform: () => number): number {
  const allocation = checker.allocationToFree(null, address, call);
  const code = perform();
  if (code !== 0 || allocation === null) return code;
  if (allocation.kind === "pool") checker.freeByHost(call, allocation);
  else checker.freed(allocation, call, "host", currentSite(), 0);
  return code;
}

/** The calls for page-locked host memory. */
export function hostMemoryCalls(checker: CheckerState, inner: DriverGroups["hostMemory"]): CheckedCalls<"hostMemory"> {
  const allocated = (code: number, out: bigint, size: bigint, call: string): number => {
    if (code === 0) checker.allocated(checker.reader.word(out), Number(size), "pinned", call, null);
    return code;
  };
  return {
    cuMemHostAlloc: (out, size, flags) =>
      allocated(inner.cuMemHostAlloc(out, size, flags), out, size, "cuMemHostAlloc"),
    cuMemAllocHost_v2: (out, size) => allocated(inner.cuMemAllocHost_v2(out, size), out, size, "cuMemAllocHost_v2"),
    cuMemFreeHost: (address) => freeNow(checker, address, "cuMemFreeHost", () => inner.cuMemFreeHost(address)),
    cuMemHostRegister_v2(address, size, flags) {
      const code = inner.cuMemHostRegister_v2(address, size, flags);
      if (code === 0) checker.allocated(address, Number(size), "registered", "cuMemHostRegister_v2", null);
      return code;
    },
    cuMemHostUnregister: (address) =>
      freeNow(checker, address, "cuMemHostUnregister", () => inner.cuMemHostUnregister(address)),
  };
}

/** The calls for managed memory. */
export function managedMemoryCalls(
  checker: CheckerState,
  inner: DriverGroups["managedMemory"],
): CheckedCalls<"managedMemory"> {
  return {
    cuMemAllocManaged(out, size, flags) {
      const code = inner.cuMemAllocManaged(out, size, flags);
      if (code === 0) checker.allocated(checker.reader.word(out), Number(size), "managed", "cuMemAllocManaged", null);
      return code;
    },
    cuMemPrefetchAsync(address, count, device, stream) {
      const pending = checker.pendingCall("cuMemPrefetchAsync", checker.stream(stream, "cuMemPrefetchAsync"));
      const code = inner.cuMemPrefetchAsync(address, count, device, stream);
      if (code === 0) pending.accepted();
      return code;
    },
  };
}

/** The call that makes all copies and fills of an allocation wait for each other and the host. */
export function pointerCalls(checker: CheckerState, inner: DriverGroups["pointer"]): CheckedCalls<"pointer"> {
  return {
    cuPointerSetAttribute(value, attribute, address) {
      const code = inner.cuPointerSetAttribute(value, attribute, address);
      if (code !== 0 || attribute !== CU_POINTER_ATTRIBUTE.SYNC_MEMOPS) return code;
      const allocation = checker.memory.find(Number(address));
      if (allocation !== undefined) allocation.syncMemops = checker.reader.at(value, 4).getUint32(0, true) !== 0;
      return code;
    },
  };
}
