/**
 * Sends memory of every place to another process and back, on real GPUs and on simulated ones.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { createInterface } from "node:readline";
import { Cuda, Ucx } from "../../mod.ts";
import { startScript } from "./child.ts";
import { contentOf } from "./ucx_messages.ts";
import { assertBytes, bytesOf, placesOf, write } from "../gpu/ucx_behaviours.ts";

/**
 * Sends to a process on another GPU, or the same one.
 *
 * @param allowed the transports that UCX may use in both processes, as UCX_TLS lists them
 * @returns the transports to it
 */
export async function sendToAnotherProcess(
  which: "real" | "simulated",
  other: number,
  size: number,
  allowed = "all",
): Promise<string[]> {
  using cuda = which === "real" ? Cuda.open() : Cuda.simulate({ schedule: "latest", devices: 2 });
  const device = cuda.device(0);
  using stream = device.createStream({ nonBlocking: true });
  using ucx = Ucx.open({ config: { TLS: allowed } });
  await using worker = ucx.createWorker();
  const args = [which, `${other}`, `${size}`, allowed];
  const child = startScript(new URL("../gpu/ucx_child.ts", import.meta.url), { args }, ["pipe", "pipe", "inherit"]);
  assert(child.stdin !== null && child.stdout !== null);
  const ended = new Promise((resolve) => child.once("close", resolve));
  const { stdout } = child;
  const line = new Promise<string>((resolve) => createInterface({ input: stdout }).once("line", resolve));
  const address = await Promise.race([line, ended.then(() => "")]);
  assert(address !== "", "the other process ended before it said its address");
  const endpoint = await worker.connect(Uint8Array.fromHex(address));
  child.stdin.write(`${worker.address.toHex()}\n`);
  const limit = { timeout: 60_000 };
  for (const [i, place] of placesOf(device, ucx).entries()) {
    using sent = place.resource.allocate(size, { stream });
    using got = place.resource.allocate(size, { stream });
    for (let round = 0; round < 3; round++) {
      const content = contentOf(10 * i + round, size);
      write(sent, new Uint8Array(size), stream);
      write(sent, content, stream); // only the send waits for it
      await Promise.all([
        endpoint.send(sent, { tag: 1n, ...limit }),
        worker.recv(got, { tag: 2n, ...limit }),
      ]);
      assertBytes(bytesOf(got, stream), content, `${place.name}, round ${round}`);
    }
  }
  const transports = endpoint.transports();
  await endpoint.close({ timeout: 5000 });
  assertEquals(await ended, 0);
  return transports;
}
