/**
 * Two machines over UCX: receives matrices, and answers each with the sums of its columns. The other side is
 * `ucx_client.ts`.
 *
 *     deno run -A examples/ucx_server.ts [host] [port]      (or bun examples/ucx_server.ts)
 *
 * The default host, 127.0.0.1, lets in this machine alone; 0.0.0.0 lets in others. With `CAUSEWAY_SECRET` in the
 * environment of both sides only who knows it comes in. SIGINT (Ctrl-C) or SIGTERM ends it. After a
 * client that was ended it has printed:
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
/** Whoever exceeds them is refused or closed; by default a listener takes what there is memory for. */
const limits = { connections: 100, messages: 4, messageBytes: 2 ** 24 };
/** How long a client may take to send a matrix, or to receive its sums, in milliseconds. */
const timeout = 60_000;

using ucx = Ucx.open();
await using worker = ucx.createWorker();
const asked = secret === undefined ? {} : { secret };
await using listener = worker.listen({ host, port: Number(port), limits, ...asked });
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => listener.close());
console.log(`listening at ${listener.host} ${listener.port}`);

/** Serves one client, until it goes or sends something else. */
async function serve(client: UcxEndpoint): Promise<never> {
  for (;;) {
    using matrix = await client.recvArray({ timeout });
    const elements = await matrix.toTypedArray();
    const [, columns = 0] = matrix.shape;
    // Without elements, too, any number of columns could be said.
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
