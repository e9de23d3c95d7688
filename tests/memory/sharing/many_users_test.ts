/**
 * One buffer shared with several processes at once, each over its own channel: the owner's buffer is closed at once,
 * and the memory is freed after the last process has released it, in any order. On simulated drivers; on GPUs, with
 * real processes: `tests/gpu/shared_by_many_test.ts`.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { MemoryChannel, UnixSocket } from "../../../src/public/sharing.ts";
import { Cuda, DeviceMemoryResource, type MemoryBuffer, SynchronousMemoryResource } from "../../../mod.ts";
import { drainFrees } from "../../../src/order/deferred_free.ts";
import { readBuffer } from "../../support/buffers.ts";
import { check, fc } from "../../support/property.ts";
import { simulatorOf } from "../../support/simulator_of.ts";
import { until } from "./ends.ts";

/** A number of users, and the order in which they release. */
const order = fc.integer({ min: 2, max: 7 }).chain((users) =>
  fc.shuffledSubarray(Array.from({ length: users }, (_, i) => i), { minLength: users, maxLength: users })
);

test("a buffer shared with several processes is freed after the last has released it, in any order", async () => {
  await check(
    fc.asyncProperty(order, fc.boolean(), fc.integer({ min: 0, max: 1000 }), async (order, isPool, seed) => {
      const here = Cuda.simulate({ schedule: "latest", seed });
      const device = here.device(0);
      const users = order.map((_, i) => Cuda.simulate({ schedule: "latest", seed: seed + 1 + i }));
      const channels = users.map((user) => {
        const [one, other] = UnixSocket.pair();
        return { owner: new MemoryChannel(one, here), user: new MemoryChannel(other, user) };
      });
      const stream = device.createStream();
      const resource = isPool
        ? new DeviceMemoryResource(device, { shareable: true })
        : new SynchronousMemoryResource(device);
      const buffer = resource.allocate(4096, { stream });
      buffer.fill(0x11, { stream });
      buffer.fill(0x22, { stream }); // only the readers wait for it
      await Promise.all(channels.map(({ owner }) => owner.send(buffer)));
      const shared = await Promise.all(channels.map(({ user }) => user.receive() as Promise<MemoryBuffer>));
      buffer.close();
      let left = order.length;
      for (const one of order) {
        const [mine, user, channel] = [shared[one], users[one], channels[one]];
        if (mine === undefined || user === undefined || channel === undefined) throw new TypeError("No such user");
        assertEquals([...new Set(readBuffer(mine, user))], [0x22], `what process ${one} reads before it releases`);
        assertEquals(simulatorOf(here).live.allocations, 1, "the memory while a process uses it");
        mine.close();
        await until("the return", () => channel.owner.shared === 0);
        left--;
        assertEquals(channels.filter(({ owner }) => owner.shared === 1).length, left);
      }
      for (const { owner, user } of channels) {
        owner.close();
        user.close();
      }
      await until("the free", () => {
        stream.synchronize();
        drainFrees();
        return simulatorOf(here).live.allocations === 0;
      });
      if (resource instanceof DeviceMemoryResource) resource.close();
      for (const cuda of [here, ...users]) cuda.close();
    }),
    25,
  );
});
