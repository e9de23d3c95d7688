/**
 * Drops buffers, imports and exports in every state, lets the garbage collector run, and prints how much it freed.
 */
import { setTimeout } from "node:timers/promises";
import { Cuda, DeviceMemoryResource } from "../../mod.ts";
import { callDeleter } from "../../src/dlpack/tensor.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { libc } from "../../src/ffi/libc.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";

let freed = 0;

function free(ptr: bigint): void {
  freed++;
  libc().loading.free(ptr);
}

function allocate(size = 64): MemoryBuffer {
  const ptr = libc().loading.calloc(1n, BigInt(size));
  return MemoryBuffer.fromAllocation({ ptr, size, device: null, stream: null, free });
}

function viewOf(buffer: MemoryBuffer): StridedMemoryView {
  return StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "float32" });
}

const count = 20;

/**
 * Collects garbage, and returns how much was freed.
 *
 * @param due how much should be. A collector that scans the stack may find the address of an unreachable object there:
 *   that object is freed in a later round, when the stack has been overwritten
 */
async function collect(due: 0 | typeof count): Promise<number> {
  const collectGarbage: unknown = Reflect.get(globalThis, "gc");
  if (typeof collectGarbage !== "function") throw new Error("this script needs gc()");
  await setTimeout(0); // buffers are registered with the collector at the end of the turn that made them
  for (let round = 0; round < 8 || (freed < due && round < 50); round++) {
    useStack(100);
    collectGarbage();
    await setTimeout(2); // finalisers run in separate tasks
    liveExports(); // this poll reclaims what consumers have released
  }
  const now = freed;
  freed = 0;
  return now;
}

/** Overwrites what earlier calls left on the stack. */
function useStack(deep: number): number {
  return deep === 0 ? 0 : 1 + useStack(deep - 1);
}

/** Runs a function many times, separately from the caller, so that nothing of it stays on the stack. */
function many<T>(once: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => once(i));
}

const results: Record<string, number> = {};

many(() => void allocate(48));
results["dropped"] = await collect(count);

many(() => allocate().close());
results["closed"] = await collect(count);

const open = many(() => allocate());
await setTimeout(0); // they are registered with the collector
open.splice(0).forEach((buffer) => buffer.close());
results["closed in a later turn"] = await collect(count);

const kept = many(() => allocate());
results["kept"] = await collect(0);
kept.splice(0);
results["kept, then dropped"] = await collect(count);

const arrays = many(() => allocate().bytes());
results["only the bytes kept"] = await collect(0);
arrays.forEach((bytes) => bytes.fill(1));
arrays.splice(0);
results["the bytes dropped too"] = await collect(count);

/** A resource that references its buffers, which do not reference it: else neither would ever be collected. */
class Knowing extends DeviceMemoryResource {
  readonly made: MemoryBuffer[] = [];
}
const simulated = Cuda.simulate();
const device = simulated.device(0);
const stream = device.createStream();
const used = (): number => device.memory.pool.use.used / 56;
many(() => {
  const resource = new Knowing(device);
  resource.made.push(resource.allocate(56, { stream }));
});
results["allocated by resources that are dropped with their buffers"] = used();
for (let round = 0; round < 20 && used() > 0; round++) await collect(0);
results["buffers of these resources that are left"] = used();

const views = many(() => viewOf(allocate()).sliced(3));
results["only a view kept"] = await collect(0);
views.splice(0);
results["the view dropped too"] = await collect(count);

const pins = many(() => allocate().pinned());
results["dropped while pinned"] = await collect(0);
pins.splice(0).forEach((pin) => pin[Symbol.dispose]());
results["unpinned after that"] = await collect(count);

many(() => void StridedMemoryView.fromTypedArray(new Float32Array(64)));
many(() => void MemoryBuffer.fromPointer(64n, 8));
results["borrowed"] = await collect(0);

many(() => void viewOf(allocate()).toDlpack());
results["tensors dropped untaken"] = await collect(count);
results["untaken tensors still exported"] = liveExports();

const source = StridedMemoryView.fromTypedArray(new Float32Array(16));
many(() => source.toDlpack({ copy: true }).close());
results["closed copies"] = await collect(0);

const taken = many(() => viewOf(allocate()).toDlpack().take());
results["tensors taken by a consumer"] = await collect(0);
results["taken tensors still exported"] = liveExports();
results["taken tensors have an address"] = taken.filter((ptr) => ptr !== 0n).length;

const late = many(() => viewOf(allocate()).toDlpack().take());
late.forEach((tensor) => callDeleter(tensor, true));
liveExports(); // this poll sees that they are released
late.forEach((tensor) => callDeleter(tensor, true));
many(() => Array.from({ length: 8 }, () => source.toDlpack().close())); // until their structs are reused
results["tensors released once more"] = await collect(count);

many(() => {
  const tensor = viewOf(allocate()).toDlpack().take();
  callDeleter(tensor, true);
  callDeleter(tensor, true);
});
results["tensors released twice"] = await collect(count);

const offered = many(() => viewOf(allocate()).toDlpack());
await setTimeout(0);
taken.push(...offered.splice(0).map((tensor) => tensor.take()));
results["tensors taken in a later turn"] = await collect(0);
results["all tensors still exported"] = liveExports();

many(() => void StridedMemoryView.fromDlpack(viewOf(allocate())));
results["imports dropped"] = await collect(count);

const imports = many(() => StridedMemoryView.fromDlpack(viewOf(allocate())).sliced("...", null));
results["only a view of an import kept"] = await collect(0);
results["its elements"] = (await imports[0]?.toTypedArray())?.length ?? -1;
imports.splice(0);
results["the view of the import dropped too"] = await collect(count);

console.log(JSON.stringify(results));
