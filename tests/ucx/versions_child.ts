/**
 * One side of a connection, for two versions of UCX, or two settings of `errors`: `listen - SECRET ERRORS`, which
 * prints its port, or `connect PORT SECRET ERRORS`, which prints the outcome and the versions that it knows, as one
 * JSON value.
 */
import process from "node:process";
import { Ucx } from "../../src/ucx/ucx.ts";

const [role, port, text = "", errors] = process.argv.slice(2);
const options = { errors: errors === "none" ? "none" : "peer" } as const;
const secret = text === "-" ? {} : { secret: text };
const ucx = Ucx.open({ config: { TLS: "tcp" } });
const worker = ucx.createWorker();
if (role === "listen") {
  const listener = worker.listen({ ...options, ...secret });
  console.log(`PORT ${listener.port} ${ucx.version}`);
  setTimeout(() => process.exit(0), 20_000);
  for await (const endpoint of listener) void endpoint.recv(new Uint8Array(1), { tag: 1n }).catch(() => {});
} else {
  const to = { host: "127.0.0.1", port: Number(port), ...secret };
  const outcome = await worker.connect(to, { ...options, timeout: 3000 }).then(async (endpoint) => {
    await endpoint.send(new Uint8Array(1), { tag: 1n, timeout: 3000 });
    return "connected";
  }).catch(String);
  console.log(JSON.stringify({ outcome, version: ucx.version }));
  process.exit(0);
}
