/**
 * Closes everything while work still uses it, the Cuda `first` or `last`, and makes no further allocation. Prints what
 * the driver still has after some time: pools, contexts, allocations, events.
 *
 * In a separate process: a poll started by something else would free this, too.
 */
import process from "node:process";
import { Cuda, DeviceMemoryResource, PinnedMemoryResource } from "../../mod.ts";
import { simulatorOf } from "../support/simulator_of.ts";
import { until } from "../support/until.ts";

const cuda = Cuda.simulate({ schedule: "latest", freesWait: false });
const simulated = simulatorOf(cuda);
const device = cuda.device(0);
const stream = device.createStream();
const pool = new DeviceMemoryResource(device, {});
const buffers = [pool, new PinnedMemoryResource(device)].map((one) => one.allocate(64, { stream }));
for (const one of buffers) one.fill(1, { stream });
if (process.argv[2] === "first") cuda.close();
for (const one of [...buffers, pool, stream, cuda]) one.close();
const left = () => {
  const { pools, contexts, allocations, events } = simulated.live;
  return [pools, contexts, allocations, events];
};
const before = left();
await until(() => simulated.live.contexts === 0);
console.log(JSON.stringify({ before: before.slice(0, 2), after: left() }));
