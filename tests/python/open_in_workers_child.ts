/**
 * Opens Python in several Workers at the same time, of which none is the first, and prints what each computes:
 * `open_in_workers_child.ts PYTHON`.
 */
import process from "node:process";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { Python } from "../../src/python/mod.ts";

const count = 4;

if (isMainThread) {
  const start = new Int32Array(new SharedArrayBuffer(8));
  const workers = Array.from({ length: count }, () => {
    return new Worker(new URL(import.meta.url), { workerData: { home: process.argv[2], start } });
  });
  const answers = workers.map((worker) => {
    return new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  });
  console.log(JSON.stringify(await Promise.all(answers)));
  process.exit(0);
} else {
  const { home, start } = workerData as { home: string; start: Int32Array<SharedArrayBuffer> };
  const here = Atomics.add(start, 0, 1) + 1;
  if (here === count) Atomics.notify(start, 1, Atomics.store(start, 1, count)); // all are loaded
  else Atomics.wait(start, 1, 0);
  parentPort?.postMessage(Python.open({ home }).evaluate("[1, 2, 3].index(3)"));
}
