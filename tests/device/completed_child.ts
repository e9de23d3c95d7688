/** Waits for streams, also where the driver refuses, and ends: nothing may keep the process alive after that. */
import { Cuda } from "../../mod.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";

using cuda = Cuda.simulate();
const device = cuda.device(0);
using stream = device.createStream();
await stream.completed();
// The second time that a context is needed, for the wait itself; the first is to ask whether the stream is captured.
SimulatedDriver.of(cuda.driver)?.failNth("cuCtxPushCurrent_v2", 2, 999);
await device.defaultStream.completed().catch((error) => console.log(error.call));
console.log("done");
