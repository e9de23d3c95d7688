/**
 * One GPU buffer is shared with seven processes at once, each on its own GPU as far as there are enough: all of them
 * read what was written, and release in every possible order. The owner's memory stays until the last has released, and
 * later writes there affect no other process. On simulated drivers:
 * `tests/memory/sharing/many_users_test.ts`.
 */
import { assertEquals } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { MemoryChannel, UnixListener } from "../../src/public/sharing.ts";
import { Cuda, DeviceMemoryResource, SynchronousMemoryResource } from "../../mod.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { patiently } from "../support/child.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { runtimes, startIn } from "../support/runtimes.ts";

const child = new URL("./shared_by_many_child.ts", import.meta.url);
const users = 7;

/** All permutations. */
function* permutations(of: readonly number[]): Generator<readonly number[]> {
  if (of.length === 0) yield [];
  for (const [i, first] of of.entries()) {
    for (const rest of permutations(of.toSpliced(i, 1))) yield [first, ...rest];
  }
}

const [title, options] = needs(
  missingGpus(),
  "seven processes have one buffer at once, and release it in every order",
);

test(title, { ...options, ...patiently }, async () => {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using stream = device.createStream();
  const pool = new DeviceMemoryResource(device, { shareable: true });
  const path = `@causeway-many-${process.pid}`;
  using listener = UnixListener.listen(path);
  const usable = runtimes.filter(({ missing }) => missing === null);
  const others = Array.from({ length: users }, (_, i) => {
    const runtime = usable[i % usable.length];
    if (runtime === undefined) throw new TypeError("No runtime");
    return startIn(runtime, child, [path, `${i % cuda.devices.length}`], { timeout: patiently.timeout });
  });
  const ended = Promise.race(others.map(({ printed }) => printed.then((text) => Promise.reject(new Error(text)))));
  ended.catch(() => {}); // at the end of the test they all end
  const channels: MemoryChannel[] = [];
  for (const _ of others) channels.push(new MemoryChannel(await Promise.race([listener.accept(), ended]), cuda));
  using slow = new SynchronousMemoryResource(device).allocate(2 ** 30);
  let orders = 0;
  for (const order of permutations(channels.map((_, i) => i))) {
    const value = orders++ % 251;
    const buffer = pool.allocate(2 ** 16, { stream });
    buffer.fill(0xff, { stream });
    // Several milliseconds: far longer than the message takes.
    if (orders % 50 === 0) { for (let i = 0; i < 20; i++) slow.fill(i, { stream }); }
    buffer.fill(value, { stream }); // only the readers wait for it
    await Promise.all(channels.map((channel) => channel.send(buffer)));
    const contents = await Promise.all(channels.map((channel) => channel.receive()));
    assertEquals(contents, channels.map(() => [value]), `what each reads, in order ${order}`);
    buffer.close();
    for (const one of order) {
      assertEquals(pool.pool.use.used, 2 ** 16, `${one} still has it, in order ${order}`);
      await channels[one]?.send("let go");
      assertEquals(await channels[one]?.receive(), "gone"); // sent after the return of the buffer
    }
    assertEquals(channels.map(({ shared }) => shared), channels.map(() => 0), `in order ${order}`);
  }
  assertEquals(orders, 5040);
  for (const channel of channels) channel.close();
  await Promise.all(others.map(({ printed }) => printed));
  drainFrees();
  device.synchronize();
  assertEquals(pool.pool.use.used, 0, "bytes that are still allocated");
  pool.close();
  console.log(`${orders} orders of ${users} processes on ${cuda.devices.length} devices`);
});
