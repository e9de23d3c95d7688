/**
 * The other process of `ucx_test.ts`: echoes what arrives in memory of each place of its GPU, from a copy made on its
 * stream. The first argument says whether the GPU is `real`, the second which one, the third the message size in bytes,
 * the fourth which transports UCX may use.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { Cuda, Ucx } from "../../mod.ts";
import { placesOf, write } from "./ucx_behaviours.ts";

const [which = "", ordinal = "0", bytes = "0", allowed = ""] = process.argv.slice(2);
using cuda = which === "real" ? Cuda.open() : Cuda.simulate({ schedule: "latest", devices: 2 });
const device = cuda.device(Number(ordinal));
using stream = device.createStream({ nonBlocking: true });
using ucx = Ucx.open({ config: { TLS: allowed } });
await using worker = ucx.createWorker();
console.log(worker.address.toHex());
const input = createInterface({ input: process.stdin });
input.once("close", () => process.exit(1)); // the first process is gone: do not outlive it
const line: string = await new Promise((resolve) => input.once("line", resolve));
const endpoint = await worker.connect(Uint8Array.fromHex(line));
const size = Number(bytes);
for (const { resource } of placesOf(device, ucx)) {
  using got = resource.allocate(size, { stream });
  using back = resource.allocate(size, { stream });
  for (let round = 0; round < 3; round++) {
    write(got, new Uint8Array(size), stream); // only the receive waits for it
    await worker.recv(got, { tag: 1n });
    back.copyFrom(got, { stream }); // only the send waits for it
    if (back.stream === null) stream.synchronize();
    await endpoint.send(back, { tag: 2n });
  }
}
await endpoint.close();
process.exit(0);
