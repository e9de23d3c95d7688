/** Starts threads one after the other, which close what they open. Prints which descriptors and threads they left. */
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { filesByDescriptor } from "../support/open_files.ts";

async function runThread(): Promise<void> {
  const thread = new Worker(new URL("./closed_in_thread.ts", import.meta.url));
  const ended = once(thread, "exit");
  await once(thread, "message");
  await ended;
}

/** Descriptors of events: the runtimes keep others of their own. */
const events = () => Array.from(filesByDescriptor().values()).filter((file) => file.includes("eventfd")).length;
const threads = () => readdirSync("/proc/self/task").length;

await runThread(); // the first makes the runtime's own
await delay(200);
const before = [events(), threads()] as const;
for (let n = 0; n < 8; n++) await runThread();
await delay(500);
console.log(events() - before[0], threads() - before[1] < 4); // the runtimes have threads for a while, too
