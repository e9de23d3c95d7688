/**
 * Two machines over UCX: sends a matrix to `ucx_server.ts`, and prints the sums of its columns.
 *
 * Usage: deno run -A examples/ucx_client.ts host port      (or bun examples/ucx_client.ts host port)
 */
import process from "node:process";
import { StridedMemoryView } from "../mod.ts";
import { Ucx } from "../src/public/ucx.ts";

const [host, port] = process.argv.slice(2);
if (host === undefined || port === undefined) {
  console.error("Usage: ucx_client.ts host port      (as ucx_server.ts prints them)");
  process.exit(2);
}
const secret = process.env["CAUSEWAY_SECRET"];

using ucx = Ucx.open();
await using worker = ucx.createWorker();
const to = { host, port: Number(port), ...(secret === undefined ? {} : { secret }) };
await using server = await worker.connect(to, { timeout: 5000 });

const matrix = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3, 4, 5, 6), { shape: [3, 2] });
await server.sendArray(matrix);
using sums = await server.recvArray({ timeout: 5000 });
console.log(`${matrix}\nsums of its columns: ${sums}\nby ${server.transports().join(", ")}`);
