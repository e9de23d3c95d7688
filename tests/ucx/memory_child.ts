/**
 * A process whose memory another one uses. Prints its worker's address and the key of its memory, without a border of
 * as many bytes at both ends as the second argument says; then, for each line that it reads, all bytes, in hexadecimal.
 */
import process from "node:process";
import { createInterface } from "node:readline";
import { Ucx } from "../../src/ucx/ucx.ts";

const [size = 0, border = 0] = process.argv.slice(2).map(Number);
const ucx = Ucx.open();
const worker = ucx.createWorker();
const memory = new Uint8Array(new ArrayBuffer(size + 2 * border));
const region = worker.register(memory.subarray(border, border + size));
console.log(JSON.stringify({ address: worker.address.toHex(), key: region.key.toHex() }));
for await (const _ of createInterface({ input: process.stdin })) console.log(memory.toHex());
region.close();
await worker.close();
ucx.close();
process.exit(0);
