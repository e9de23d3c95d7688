/**
 * Two machines over UCX: receives matrices, and answers each with the sums of its columns. The other side is
 * `ucx_client.ts`.
 *
 *     deno run --allow-ffi --allow-env=CAUSEWAY_SECRET examples/ucx_server.ts [host] [port]
 *     bun examples/ucx_server.ts [host] [port]
 *
 * The default host, 127.0.0.1, accepts only this machine; 0.0.0.0 accepts others. With `CAUSEWAY_SECRET` in the
 * environment of both sides, only clients that know it are accepted. SIGINT (Ctrl-C) or SIGTERM stops the server. After
 * a client that was stopped it has printed:
 *
 * ```text
 * listening at 127.0.0.1 ...
 * a client has gone: ...
 * ```
 */
import process from "node:process";
import { Ucx, type UcxEndpoint } from "../src/public/ucx.ts";

const [host = "127.0.0.1", port = "0"] = process.argv.slice(2);
const secret = process.env["CAUSEWAY_SECRET"];
/** Clients that exceed them are refused or closed; by default a listener accepts as much as memory allows. */
const limits = { connections: 100, messages: 4, messageBytes: 2 ** 24 };
/** How long a client may take to send a matrix, or to receive its sums, in milliseconds. */
const timeout = 60_000;

using ucx = Ucx.open();
await using worker = ucx.createWorker();
const asked = secret === undefined ? {} : { secret };
await using listener = worker.listen({ host, port: Number(port), limits, ...asked });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => listener.close());
console.log(`listening at ${listener.host} ${listener.port}`);

/** Serves one client, until it disconnects or sends something else. */
async function serve(client: UcxEndpoint): Promise<never> {
  for (;;) {
    using matrix = await client.recvArray({ timeout });
    const elements = await matrix.toTypedArray();
    const [, columns = 0] = matrix.shape;
    // Even without elements, a client could claim any number of columns.
    if (matrix.shape.length !== 2 || elements.length === 0 || !(elements instanceof Float32Array)) {
      throw new TypeError(`expected a matrix of float32, got ${matrix.dtype.name} of shape (${matrix.shape})`);
    }
    const sums = new Float32Array(columns);
    elements.forEach((element, i) => sums[i % columns] = (sums[i % columns] ?? 0) + element);
    await client.sendArray(sums, { timeout });
  }
}

for await (const client of listener) {
  serve(client).catch(async (error) => {
    console.log(`a client has gone: ${error.message}`);
    await client.close({ force: true });
  });
}
