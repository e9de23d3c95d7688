/** What UCX does in a process that may open few more files: prints errors, and what is received. */
import { setTimeout as delay } from "node:timers/promises";
import { errno } from "../../bindings/libc.ts";
import { littleEndian } from "../../src/ffi/endian.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { leaveFiles } from "../support/few_files.ts";

/** What comes of an act while this process may open `count` more files. */
async function withFiles(count: number, act: () => unknown): Promise<void> {
  const allowAll = leaveFiles(count);
  let outcome = "done";
  try {
    await act();
  } catch (error) {
    outcome = String(error).split(". ")[0] ?? "";
  }
  allowAll(); // printing may take one
  console.log(outcome);
}

// With these numbers UCX 1.13.1 ended the process, or went without TCP.
for (const count of [0, 3]) await withFiles(count, () => Ucx.open().close());
using ucx = Ucx.open();
for (const count of [3, 10]) await withFiles(count, () => ucx.createWorker().close());

await using alice = ucx.createWorker();
await using bob = ucx.createWorker();
await withFiles(1, () => alice.connect(bob.address));
await withFiles(1, () => alice.connect({ host: "127.0.0.1", port: 1 }));
await withFiles(0, () => alice.listen({ port: 0 }));

const endpoint = await alice.connect(bob.address);
const first = bob.recv(new Uint8Array(1), { tag: 1n });
const sent = endpoint.send(Uint8Array.of(1), { tag: 1n });
for (let i = 0; i < 10_000; i++) alice.poll() + bob.poll(); // connects before either has slept
// Deno itself may end for want of descriptors while it waits: only ours fail.
const own = libc().files;
const put = (files: typeof own) => Object.defineProperty(libc(), "files", { value: files, configurable: true });
const place = new DataView(ffiPort().memory(libc().sockets.__errno_location(), 4));
put({ ...own, eventfd: () => (place.setInt32(0, errno.EMFILE, littleEndian), -1) });
await Promise.all([first, sent]);
const into = new Uint8Array(1);
async function exchange(content: number): Promise<void> {
  const received = bob.recv(into, { tag: 2n });
  await delay(50); // both sleep, most times
  await endpoint.send(Uint8Array.of(content), { tag: 2n });
  await received;
}
for (const content of [3, 4, 5, 6, 7]) await exchange(content);
const lost = new Uint8Array(1);
const outcome = bob.recv(lost, { tag: 3n }).then(() => "received", (error) => error.message);
await delay(50);
const moved = new Uint8Array(lost.buffer.transfer());
await endpoint.send(Uint8Array.of(9), { tag: 3n });
await delay(50);
console.log(`moved ${moved}: ${(await outcome).split(",")[0]}`);
await bob.recv(new Uint8Array(1), { tag: 3n }); // UCX would report it at the end
put(own);
console.log(`received ${into}`);
await exchange(8);
console.log(`received ${into}`);
