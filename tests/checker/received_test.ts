/**
 * Memory of another process is ready for its home stream, which waits for that process: a use on another stream must be
 * ordered after the home stream, or is reported.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  type CudaStream,
  DeviceMemoryResource,
  type MemoryBuffer,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { MemoryChannel, UnixSocket } from "../../src/public/sharing.ts";
import { check, fc } from "../support/property.ts";

/** What a program does with a received buffer, and whether it is correctly ordered. */
const uses = {
  "on the home stream": [(buffer: MemoryBuffer, home: CudaStream) => buffer.fill(1, { stream: home }), true],
  "on another one": [
    (buffer: MemoryBuffer, _: CudaStream, other: CudaStream) => buffer.fill(1, { stream: other }),
    false,
  ],
  "on another one that waits": [(buffer: MemoryBuffer, home: CudaStream, other: CudaStream) => {
    other.wait(home);
    buffer.fill(1, { stream: other });
    home.wait(other);
  }, true],
  "on another one after the host has waited": [(buffer: MemoryBuffer, home: CudaStream, other: CudaStream) => {
    home.synchronize();
    buffer.fill(1, { stream: other });
    home.wait(other);
  }, true],
} as const;

test("a use of memory of another process is reported if nothing orders it after the stream that waits for that process", async () => {
  const names = Object.keys(uses) as (keyof typeof uses)[];
  await check(
    fc.asyncProperty(
      fc.nat(),
      fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 4 }),
      async (seed, todo) => {
        const messages: string[] = [];
        const here = Cuda.simulate({ seed });
        const there = Cuda.simulate({
          seed,
          check: { leaks: false, onReport: ({ message }) => messages.push(message) },
        });
        const [one, other] = UnixSocket.pair();
        {
          using owner = new MemoryChannel(one, here);
          using user = new MemoryChannel(other, there);
          using work = here.device(0).createStream();
          using pool = new DeviceMemoryResource(here.device(0), { shareable: true });
          for (const name of todo) {
            using home = there.device(0).createStream();
            using elsewhere = there.device(0).createStream();
            using buffer = pool.allocate(64, { stream: work });
            buffer.fill(7, { stream: work });
            await owner.send(buffer);
            const received = await user.receive({ stream: home }) as MemoryBuffer;
            const [use, isOrdered] = uses[name];
            const before = messages.length;
            use(received, home, elsewhere);
            assertEquals(messages.length > before, !isOrdered, `${name}: ${messages.slice(before).join("\n")}`);
            if (!isOrdered) assert(messages[before]?.includes("after MemoryChannel.receive()"), messages[before]);
            there.device(0).synchronize();
            received.close();
          }
        }
        for (const cuda of [here, there]) cuda.close();
      },
    ),
    60,
  );
});

test("memory that has no home stream in its owner's process may be used on any stream", async () => {
  const messages: string[] = [];
  const here = Cuda.simulate();
  const there = Cuda.simulate({ check: { leaks: false, onReport: ({ message }) => messages.push(message) } });
  const [one, other] = UnixSocket.pair();
  {
    using owner = new MemoryChannel(one, here);
    using user = new MemoryChannel(other, there);
    using buffer = new SynchronousMemoryResource(here.device(0)).allocate(64);
    assertEquals(buffer.stream, null);
    await owner.send(buffer);
    using home = there.device(0).createStream();
    using elsewhere = there.device(0).createStream();
    const received = await user.receive({ stream: home }) as MemoryBuffer;
    received.fill(1, { stream: elsewhere });
    assertEquals(messages, []);
    there.device(0).synchronize();
    received.close();
  }
  for (const cuda of [here, there]) cuda.close();
});

test("memory received again while it is still open is used as both sides have agreed", async () => {
  const messages: string[] = [];
  const here = Cuda.simulate();
  const there = Cuda.simulate({ check: { leaks: false, onReport: ({ message }) => messages.push(message) } });
  const [one, other] = UnixSocket.pair();
  {
    using owner = new MemoryChannel(one, here);
    using user = new MemoryChannel(other, there);
    using pool = new DeviceMemoryResource(here.device(0), { shareable: true });
    using work = here.device(0).createStream();
    using buffer = pool.allocate(64, { stream: work });
    using first = there.device(0).createStream();
    using second = there.device(0).createStream();
    await owner.send([buffer, buffer]);
    const [former] = await user.receive({ stream: first }) as [MemoryBuffer, MemoryBuffer];
    former.fill(1, { stream: first });
    await owner.send(buffer);
    const again = await user.receive({ stream: second }) as MemoryBuffer;
    former.fill(2, { stream: first }); // as it could before
    assertEquals(messages, []);
    again.close();
    there.device(0).synchronize();
  }
  here.close();
});
