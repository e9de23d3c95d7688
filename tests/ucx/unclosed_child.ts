/**
 * Leaves everything open and ends: none of it may keep the process alive. Before that, drops the memory of receives in
 * flight and prints how much of it was freed.
 */
import { setTimeout } from "node:timers/promises";
import { libc } from "../../src/ffi/libc.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";

const ucx = Ucx.open();
const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
const endpoint = await sender.connect(receiver.address);
let freed = 0;
const stop = new AbortController();

/** Memory that records when it is freed. */
function counted(): MemoryBuffer {
  const ptr = libc().loading.calloc(1n, 100n);
  const free = () => {
    freed++;
    libc().loading.free(ptr);
  };
  return MemoryBuffer.fromAllocation({ ptr, size: 100, device: null, stream: null, free });
}

/** Begins receives into memory that nothing else holds. */
function begin(): { array: WeakRef<ArrayBuffer>; ends: Promise<unknown>[] } {
  const array = new Uint8Array(new ArrayBuffer(100));
  const view = StridedMemoryView.fromBuffer(counted(), { shape: [100], dtype: "uint8" });
  const options = { tag: 5n, signal: stop.signal };
  const ends = [array, counted(), view].map((into) => receiver.recv(into, options).catch(() => {}));
  return { array: new WeakRef(array.buffer), ends };
}

async function collect(): Promise<void> {
  const collectGarbage: unknown = Reflect.get(globalThis, "gc");
  if (typeof collectGarbage !== "function") throw new Error("this script needs gc()");
  for (let i = 0; i < 8; i++) {
    collectGarbage();
    await setTimeout(2);
  }
}

const { array, ends } = begin();
await collect();
const during = freed + (array.deref() === undefined ? 1 : 0);
await setTimeout(2); // deref keeps its target for the rest of a task
stop.abort();
await Promise.all(ends.splice(0));
await collect();
const after = freed + (array.deref() === undefined ? 1 : 0);
await endpoint.send(new Uint8Array(1));
await receiver.recv(new Uint8Array(1), { timeout: 3_600_000 }); // its timer does not keep the process alive
const last = new AbortController();
const slept = receiver.recv(new Uint8Array(1), { signal: last.signal }).catch(() => {});
await setTimeout(50); // the worker sleeps, and keeps the process alive
last.abort();
await slept;
const alone = ucx.createWorker(); // without a peer that it might have to answer
Reflect.set(globalThis, "alone", alone); // not collected
await alone.recv(new Uint8Array(1), { timeout: 50 }).catch(() => {}); // it sleeps meanwhile
const back = await receiver.connect(sender.address);
Reflect.set(globalThis, "back", back);
const reader = back.readable.getReader();
const read = reader.read();
await setTimeout(50); // the worker sleeps, as above
await reader.cancel();
await read;
console.log(JSON.stringify({ during, after }));
