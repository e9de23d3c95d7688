/**
 * Two machines over UCX: sends a matrix every second to `ucx_server.ts`, and prints the sums of its columns. If the
 * server goes away, the client reconnects once it is back, and resends what it has not answered.
 *
 *     deno run --allow-ffi --allow-env=CAUSEWAY_SECRET examples/ucx_client.ts host port [count]
 *     bun examples/ucx_client.ts host port [count]
 *
 * Set `CAUSEWAY_SECRET` in the environment to the server's, if it has one. With three matrices, and a server that is
 * stopped after the first and restarted on its port, it prints:
 *
 * ```text
 * connected by ...
 * matrix 1 has the sums [4. 6.]
 * the server has gone: ...
 * connected by ...
 * matrix 2 has the sums [6. 8.]
 * matrix 3 has the sums [ 8. 10.]
 * ```
 */
import process from "node:process";
import { setTimeout } from "node:timers/promises";
import { StridedMemoryView } from "../mod.ts";
import { Ucx, type UcxEndpoint, UcxError } from "../src/public/ucx.ts";

const [host, port, count = "3"] = process.argv.slice(2);
if (host === undefined || port === undefined) {
  console.error("Usage: ucx_client.ts host port [count]      (as ucx_server.ts prints them)");
  process.exit(2);
}
const secret = process.env["CAUSEWAY_SECRET"];
const to = { host, port: Number(port), ...(secret === undefined ? {} : { secret }) };

using ucx = Ucx.open();
await using worker = ucx.createWorker();

async function connect(): Promise<UcxEndpoint> {
  const server = await worker.connect(to, { timeout: 5000 });
  console.log(`connected by ${server.transports().join(", ")}`);
  return server;
}

/** Reconnects to the server as soon as it is back, within a minute. */
async function reconnect(): Promise<UcxEndpoint> {
  const end = Date.now() + 60_000;
  for (;;) {
    try {
      return await connect();
    } catch (error) {
      if (!(error instanceof UcxError) || Date.now() > end) throw error;
      await setTimeout(500);
    }
  }
}

let server = await connect();
for (let i = 1; i <= Number(count);) {
  const matrix = StridedMemoryView.fromArray([[i, i + 1], [i + 2, i + 3]], "float32");
  try {
    await server.sendArray(matrix, { timeout: 5000 });
    using sums = await server.recvArray({ timeout: 5000 });
    console.log(`matrix ${i} has the sums ${sums}`);
    if (i++ < Number(count)) await setTimeout(1000);
  } catch (error) {
    if (!(error instanceof UcxError)) throw error;
    console.log(`the server has gone: ${error.message}`);
    await server.close({ force: true });
    server = await reconnect();
  }
}
await server.close();
