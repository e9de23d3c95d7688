/** Short-lived pinned memory: exclusive while in use, kept for the next user, and freed with the device. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda } from "../../mod.ts";
import { withPinned } from "../../src/copy/pinned_cache.ts";
import { check, fc } from "../support/property.ts";
import { simulatorOf } from "../support/simulator_of.ts";

const limit = 64 * 2 ** 20;

test("cached pinned memory has one user, is large enough, bounded, and freed with the device", async () => {
  const size = fc.oneof(
    fc.integer({ min: 1, max: 2 ** 18 }),
    fc.constantFrom(1, 2 ** 16, 2 ** 16 + 1, 2 ** 25, limit + 1),
  );
  const users = fc.array(fc.record({ size, turns: fc.nat(3), fails: fc.nat(9).map((one) => one === 0) }), {
    maxLength: 12,
  });
  await check(
    fc.asyncProperty(users, fc.boolean(), async (list, early) => {
      const cuda = Cuda.simulate();
      const simulated = simulatorOf(cuda);
      const stream = cuda.device(0).createStream();
      const taken = new Map<bigint, number>();
      const uses = list.map(({ size, turns, fails }) =>
        withPinned(stream, size, async (buffer) => {
          assert(buffer.size >= size && buffer.kind === "pinned");
          for (const [ptr, bytes] of taken) {
            assert(buffer.ptr + BigInt(buffer.size) <= ptr || buffer.ptr >= ptr + BigInt(bytes), "it is in use");
          }
          taken.set(buffer.ptr, buffer.size);
          for (let i = 0; i < turns; i++) await Promise.resolve();
          taken.delete(buffer.ptr);
          if (fails) throw new Error("as wanted");
        }).catch((error: Error) => assertEquals([error.message, fails], ["as wanted", true]))
      );
      if (early) {
        stream.close();
        cuda.close();
      }
      await Promise.all(uses);
      assert(simulated.live.bytes <= limit, `${simulated.live.bytes} bytes are kept`);
      stream.close();
      cuda.close();
      assertEquals([simulated.live.allocations, simulated.live.contexts], [0, 0]);
    }),
    300,
  );
});

test("cached memory is reused, and repeated reads allocate once", async () => {
  const cuda = Cuda.simulate({ check: true });
  const simulated = SimulatedDriver.of(cuda.driver);
  const stream = cuda.device(0).createStream();
  for (let i = 0; i < 1200; i++) await withPinned(stream, 1000 + i, () => Promise.resolve());
  assertEquals(simulated?.calls("cuMemHostAlloc"), 1);
  await assertRejects(() => withPinned(stream, 1000, () => Promise.reject(new Error("as wanted"))), Error, "as wanted");
  await withPinned(stream, 1000, () => Promise.resolve());
  assertEquals(simulated?.calls("cuMemHostAlloc"), 2);
  stream.close();
  cuda.close(); // the checker finds no leaks
});
