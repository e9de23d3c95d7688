/**
 * Both ends of a channel, in one process, over two simulated drivers.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import type { Schedule } from "../../../src/public/sim.ts";
import { MemoryChannel, UnixSocket } from "../../../src/public/sharing.ts";
import { Cuda } from "../../../mod.ts";
import { drainFrees } from "../../../src/order/deferred_free.ts";
import { until as untilHolds } from "../../support/until.ts";
import { simulatorOf } from "../../support/simulator_of.ts";

/** The driver's live objects. */
export function live(cuda: Cuda) {
  return simulatorOf(cuda).live;
}

export interface Ends {
  readonly here: Cuda;
  readonly there: Cuda;
  readonly owner: MemoryChannel;
  readonly user: MemoryChannel;
}

export function ends(schedule: Schedule = "random", seed = 0, devicesThere = 2): Ends {
  const freesWait = seed % 2 === 1;
  const here = Cuda.simulate({ schedule, seed, devices: 2, freesWait });
  const there = Cuda.simulate({ schedule, seed: seed + 1, devices: devicesThere, freesWait });
  const [one, other] = UnixSocket.pair();
  return { here, there, owner: new MemoryChannel(one, here), user: new MemoryChannel(other, there) };
}

/** Waits until a condition holds that depends on data from the socket. */
export async function until(what: string, condition: () => boolean): Promise<void> {
  await untilHolds(condition);
  assert(condition(), `${what} did not happen`);
}

/**
 * Closes both drivers, and fails if anything stays in them. What a channel holds is released with its connection, in a
 * later turn of the event loop, and the frees that this causes may need polling in turn.
 */
export async function assertNothingLeft({ here, there }: Pick<Ends, "here" | "there">): Promise<void> {
  const left = (cuda: Cuda) => {
    const { allocations, pools, events, streams } = live(cuda);
    return { allocations, pools, events, streams };
  };
  const isEmpty = (cuda: Cuda) => Object.values(left(cuda)).every((count) => count === 0);
  await until("the end", () => {
    drainFrees();
    return isEmpty(here) && isEmpty(there);
  }).catch(() => {});
  const nothing = { allocations: 0, pools: 0, events: 0, streams: 0 };
  assertEquals([left(here), left(there)], [nothing, nothing]);
  for (const cuda of [here, there]) cuda.close();
}
