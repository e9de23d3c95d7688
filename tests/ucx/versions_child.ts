/**
 * One side of a connection, for two versions of UCX: `listen SECRET`, which prints its port, or `connect PORT SECRET`,
 * which prints as one JSON value the outcome and the versions that it knows.
 */
import process from "node:process";
import { Ucx } from "../../src/ucx/ucx.ts";

const [role, ...rest] = process.argv.slice(2);
const secret = rest.at(-1) === "-" ? {} : { secret: rest.at(-1) ?? "" };
const ucx = Ucx.open({ config: { TLS: "tcp" } });
const worker = ucx.createWorker();
if (role === "listen") {
  const listener = worker.listen(secret);
  console.log(`PORT ${listener.port} ${ucx.version}`);
  setTimeout(() => process.exit(0), 20_000);
  for await (const endpoint of listener) void endpoint.recv(new Uint8Array(1), { tag: 1n }).catch(() => {});
} else {
  const to = { host: "127.0.0.1", port: Number(rest[0]), ...secret };
  const outcome = await worker.connect(to, { timeout: 3000 }).then(async (endpoint) => {
    await endpoint.send(new Uint8Array(1), { tag: 1n, timeout: 3000 });
    return "connected";
  }).catch(String);
  console.log(JSON.stringify({ outcome, version: ucx.version }));
  process.exit(0);
}
