/**
 * Memory of another process is closed here when the work enqueued on it is done, once, whatever is closed first.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, SynchronousMemoryResource } from "../../mod.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { simulatorOf } from "../support/simulator_of.ts";

function setUp() {
  const [owner, user] = [Cuda.simulate(), Cuda.simulate({ schedule: "latest" })];
  const simulated = simulatorOf(user);
  const device = user.device(0);
  const stream = device.createStream();
  const exported = new SynchronousMemoryResource(owner.device(0)).allocate(64);
  const imported = new SynchronousMemoryResource(device).importBuffer(exported.exportDescriptor(), { stream });
  return { owner, user, simulated, stream, exported, imported, closed: () => simulated.calls("cuIpcCloseMemHandle") };
}

test("it stays mapped while work still uses it", () => {
  const { owner, user, stream, exported, imported, closed } = setUp();
  imported.fill(1, { stream });
  imported.close();
  assertEquals(closed(), 0);
  stream.synchronize();
  drainFrees();
  assertEquals(closed(), 1);
  exported.close();
  for (const one of [stream, user, owner]) one.close();
});

test("it retains its context until it is closed", () => {
  const { owner, user, simulated, stream, exported, imported, closed } = setUp();
  stream.close();
  user.close();
  assertEquals([closed(), simulated.live.contexts], [0, 1]);
  imported.close();
  drainFrees();
  assertEquals([closed(), simulated.live.contexts], [1, 0]);
  exported.close();
  owner.close();
});
