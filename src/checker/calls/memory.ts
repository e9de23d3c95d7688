/**
 * Memory that is allocated and freed at once.
 *
 * @module
 */
import { CU_POINTER_ATTRIBUTE } from "../../../bindings/cuda_types.ts";
import type { DriverGroups } from "../../driver/driver.ts";
import { here } from "../call_site.ts";
import type { Watch } from "../checker_state.ts";
import type { Watched } from "./calls.ts";

/** The calls for device memory. */
export function memoryCalls(watch: Watch, inner: DriverGroups["memory"]): Watched<"memory"> {
  return {
    cuMemAlloc_v2(out, size) {
      const code = inner.cuMemAlloc_v2(out, size);
      if (code === 0) watch.allocate(watch.peek.word(out), Number(size), "device", "cuMemAlloc_v2", null);
      return code;
    },
    cuMemAllocPitch_v2(out, pitchOut, width, height, elementBytes) {
      const code = inner.cuMemAllocPitch_v2(out, pitchOut, width, height, elementBytes);
      if (code !== 0) return code;
      const bytes = Number(watch.peek.word(pitchOut) * height);
      watch.allocate(watch.peek.word(out), bytes, "device", "cuMemAllocPitch_v2", null);
      return code;
    },
    cuMemFree_v2: (address) => freeNow(watch, address, "cuMemFree_v2", () => inner.cuMemFree_v2(address)),
  };
}

/**
 * Frees memory at once. Documented: memory of a pool must not be in use any more. Other memory drivers take back when its
 * uses are over, though they need not say so: nothing is said against whoever relies on it, and nothing follows from it.
 */
function freeNow(watch: Watch, address: bigint, call: string, perform: () => number): number {
  const known = watch.freeing(null, address, call);
  const code = perform();
  if (code !== 0 || known === null) return code;
  if (known.kind === "pool") watch.freeByHost(call, known);
  else watch.free(known, call, "host", here(), 0);
  return code;
}

/** The calls for page-locked host memory. */
export function hostMemoryCalls(watch: Watch, inner: DriverGroups["hostMemory"]): Watched<"hostMemory"> {
  const allocated = (code: number, out: bigint, size: bigint, call: string): number => {
    if (code === 0) watch.allocate(watch.peek.word(out), Number(size), "pinned", call, null);
    return code;
  };
  return {
    cuMemHostAlloc: (out, size, flags) =>
      allocated(inner.cuMemHostAlloc(out, size, flags), out, size, "cuMemHostAlloc"),
    cuMemAllocHost_v2: (out, size) => allocated(inner.cuMemAllocHost_v2(out, size), out, size, "cuMemAllocHost_v2"),
    cuMemFreeHost: (address) => freeNow(watch, address, "cuMemFreeHost", () => inner.cuMemFreeHost(address)),
    cuMemHostRegister_v2(address, size, flags) {
      const code = inner.cuMemHostRegister_v2(address, size, flags);
      if (code === 0) watch.allocate(address, Number(size), "registered", "cuMemHostRegister_v2", null);
      return code;
    },
    cuMemHostUnregister: (address) =>
      freeNow(watch, address, "cuMemHostUnregister", () => inner.cuMemHostUnregister(address)),
  };
}

/** The calls for managed memory. */
export function managedMemoryCalls(watch: Watch, inner: DriverGroups["managedMemory"]): Watched<"managedMemory"> {
  return {
    cuMemAllocManaged(out, size, flags) {
      const code = inner.cuMemAllocManaged(out, size, flags);
      if (code === 0) watch.allocate(watch.peek.word(out), Number(size), "managed", "cuMemAllocManaged", null);
      return code;
    },
    cuMemPrefetchAsync(address, count, device, stream) {
      const work = watch.work("cuMemPrefetchAsync", watch.lane(stream, "cuMemPrefetchAsync"));
      const code = inner.cuMemPrefetchAsync(address, count, device, stream);
      if (code === 0) work.done();
      return code;
    },
  };
}

/** The call that makes all copies and fills of an allocation wait for each other and the host. */
export function pointerCalls(watch: Watch, inner: DriverGroups["pointer"]): Watched<"pointer"> {
  return {
    cuPointerSetAttribute(value, attribute, address) {
      const code = inner.cuPointerSetAttribute(value, attribute, address);
      if (code !== 0 || attribute !== CU_POINTER_ATTRIBUTE.SYNC_MEMOPS) return code;
      const known = watch.memory.find(Number(address));
      if (known !== undefined) known.syncMemops = watch.peek.at(value, 4).getUint32(0, true) !== 0;
      return code;
    },
  };
}
