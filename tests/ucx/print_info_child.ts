/** Reports how an endpoint sends, some times: UCX prints that. And whether the given allocator is loaded. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { Ucx } from "../../mod.ts";

using ucx = Ucx.open({ config: { TLS: "tcp" } });
await using worker = ucx.createWorker();
const endpoint = await worker.connect(worker.address);
await Promise.all([endpoint.send(new Uint8Array(1)), worker.recv(new Uint8Array(1))]);
const transports = new Set(Array.from({ length: 100 }, () => endpoint.transports().join()));
const isThere = readFileSync("/proc/self/maps", "utf8").includes(process.argv.at(-1) ?? "");
console.log(JSON.stringify({ answers: transports.size, isThere }));
