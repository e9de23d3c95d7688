/**
 * Closes pools while frees of their memory are pending on streams that are closed, too, and waits for the device after
 * each. Prints `done`.
 */
import { Cuda, DeviceMemoryResource } from "../../mod.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";

using cuda = Cuda.open();
const device = cuda.device(0);
using filler = device.memory.allocate(2 ** 28);
for (let i = 0; i < 300; i++) {
  const stream = device.createStream();
  const pool = new DeviceMemoryResource(device, { maxSize: 2 ** 26 });
  const buffer = pool.allocate(64, { stream });
  filler.fill(i % 200, { stream }); // takes longer than the calls below
  buffer.close();
  pool.close();
  stream.close();
  drainFrees();
  device.synchronize();
}
console.log("done");
