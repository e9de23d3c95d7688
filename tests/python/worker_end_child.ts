/**
 * Starts Workers that use Python, and ends them, one after the other; prints how many threads and descriptors this
 * process has after the first few, and after all of them: `worker_end_child.ts PYTHON WAY terminate|exit`.
 */
import { readdirSync } from "node:fs";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { Python } from "../../src/python/mod.ts";

const [home = "", way = "", end = ""] = isMainThread ? process.argv.slice(2) : workerData as string[];

const scene = `
import asyncio, threading, time
async def soon(): await asyncio.sleep(0.001)
async def never(): await asyncio.sleep(1e9)
def on_a_thread(function):
    results = []
    def ask():
        try: results.append(function(1))
        except RuntimeError as error: results.append(str(error))
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return results[0]
def await_on_a_thread(function):
    async def main(): await function(1)
    def run():
        try: asyncio.run(main())
        except RuntimeError: pass
    threading.Thread(target=run).start()
kept = []
def keep(function): kept.append(function)
def call_kept():
    for function in kept:
        # As if this thread had got the number of the Worker's.
        type(function).__call__.__globals__["javascript_thread"] = threading.get_native_id()
        try: function(1)
        except RuntimeError as error: yield str(error)
`;

/** How many threads and descriptors there are, once they have stayed as many for a while: threads end by themselves. */
async function inUse(): Promise<[threads: number, descriptors: number]> {
  const now = () => ["task", "fd"].map((folder) => readdirSync(`/proc/self/${folder}`).length) as [number, number];
  let [last, since] = [now(), performance.now()];
  while (performance.now() - since < 300) {
    await pause(20);
    const next = now();
    if (next.join() !== last.join()) [last, since] = [next, performance.now()];
  }
  return last;
}

async function main(): Promise<void> {
  const py = Python.open({ home });
  py.run(scene);
  const counts: [number, number][] = [];
  for (let i = 0; i < 14; i++) {
    if (i === 4) counts.push(await inUse());
    const worker = new Worker(new URL(import.meta.url), { workerData: [home, way, end] });
    await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    const exited = new Promise((resolve) => worker.once("exit", resolve));
    if (end === "terminate") await worker.terminate();
    await exited;
  }
  counts.push(await inUse());
  const errors = new Set(py.evaluate("list(call_kept())") as Iterable<string>);
  console.log(JSON.stringify({ counts, errors: [...errors], answer: await py.async(py.builtins["abs"])(-3) }));
  process.exit(0);
}

const ways: Record<string, (py: Python) => unknown> = {
  call: (py) => Promise.all([1, 2, 3, 4].map(() => py.async(py.import("time")["sleep"])(0.001))),
  "calls that have not begun": (py) => {
    for (let i = 0; i < 200; i++) void py.async(py.import("time")["sleep"])(0.05).then(() => {}, () => {});
  },
  "inside a function": (py) =>
    py.evaluate("lambda function: function()")(() => {
      parentPort?.postMessage("ready");
      if (end === "exit") process.exit(0);
      for (;;);
    }),
  coroutine: (py) => py.evaluate("soon")(),
  "pending coroutine": (py) => {
    void py.evaluate("never")().then(() => {});
    return py.evaluate("soon")();
  },
  function: (py) => py.evaluate("keep")((n: number) => n + 1),
  "awaited function on a thread": (py) =>
    new Promise<void>((resolve) => {
      const alive = setInterval(() => {}, 1000); // nothing else of the Worker is
      py.evaluate("await_on_a_thread")(async () => {
        clearInterval(alive);
        resolve();
        await new Promise(() => {});
      });
    }),
  "function on a thread": (py) => py.async(py.evaluate("on_a_thread"))((n: number) => n + 1),
};

if (isMainThread) await main();
else {
  const py = Python.open({ home });
  await ways[way]?.(py);
  parentPort?.postMessage("ready");
  if (end === "exit") parentPort?.unref(); // nothing keeps it alive
  else setInterval(() => {}, 1000);
}
