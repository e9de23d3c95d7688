/**
 * Leaves everything open and ends: nothing of it may keep the process alive. Before that, drops the memory of receives
 * under way and prints whether the garbage collector took it.
 */
import { setTimeout } from "node:timers/promises";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";

const ucx = Ucx.open();
const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
const endpoint = await sender.connect(receiver.address);
const resource = new HostMemoryResource();
const stop = new AbortController();

/** Begins receives into memory that nobody else holds. */
function begin(): { refs: WeakRef<object>[]; ends: Promise<unknown>[] } {
  const array = new Uint8Array(new ArrayBuffer(100));
  const buffer = resource.allocate(100);
  const view = StridedMemoryView.fromBuffer(resource.allocate(100), { shape: [100], dtype: "uint8" });
  const options = { tag: 5n, signal: stop.signal };
  const ends = [array, buffer, view].map((into) => receiver.recv(into, options).catch(() => {}));
  return { refs: [array.buffer, buffer, view.buffer].map((memory) => new WeakRef(memory)), ends };
}

async function collect(): Promise<void> {
  const collectGarbage: unknown = Reflect.get(globalThis, "gc");
  if (typeof collectGarbage !== "function") throw new Error("this script needs gc()");
  for (let i = 0; i < 8; i++) {
    collectGarbage();
    await setTimeout(2);
  }
}

const { refs, ends } = begin();
await collect();
const during = refs.filter((ref) => ref.deref() !== undefined).length;
await setTimeout(2); // deref keeps its target for the rest of a task
stop.abort();
await Promise.all(ends.splice(0));
await collect();
const after = refs.filter((ref) => ref.deref() !== undefined).length;
await endpoint.send(new Uint8Array(1));
console.log(JSON.stringify({ during, after }));
