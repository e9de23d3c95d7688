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
  const lent = new SynchronousMemoryResource(owner.device(0)).allocate(64);
  const borrowed = new SynchronousMemoryResource(device).importBuffer(lent.exportDescriptor(), { stream });
  return { owner, user, simulated, stream, lent, borrowed, closed: () => simulated.calls("cuIpcCloseMemHandle") };
}

test("it stays mapped while work still uses it", () => {
  const { owner, user, stream, lent, borrowed, closed } = setUp();
  borrowed.fill(1, { stream });
  borrowed.close();
  assertEquals(closed(), 0);
  stream.synchronize();
  drainFrees();
  assertEquals(closed(), 1);
  lent.close();
  for (const one of [stream, user, owner]) one.close();
});

test("it retains its context until it is closed", () => {
  const { owner, user, simulated, stream, lent, borrowed, closed } = setUp();
  stream.close();
  user.close();
  assertEquals([closed(), simulated.live.contexts], [0, 1]);
  borrowed.close();
  drainFrees();
  assertEquals([closed(), simulated.live.contexts], [1, 0]);
  lent.close();
  owner.close();
});
