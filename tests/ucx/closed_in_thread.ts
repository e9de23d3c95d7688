/** A thread of `closed_in_thread_child.ts`: closes a worker that has slept, in order, and ends at once. */
import { parentPort } from "node:worker_threads";
import { setTimeout as delay } from "node:timers/promises";
import { Ucx } from "../../src/ucx/ucx.ts";

const ucx = Ucx.open();
const worker = ucx.createWorker();
if (worker.address.length > 0) await delay(30); // it sleeps until a peer connects
await worker.close();
ucx.close();
parentPort?.postMessage("closed");
