/** Drops workers and a context, and closes as many: each dropped one is reported under `CAUSEWAY_LEAKS=1`. */
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { Ucx } from "../../src/ucx/ucx.ts";

const open = { config: { TLS: "sm,tcp,self" } };
const ucx = Ucx.open(open);

function dropWorkers(): void {
  for (let i = 0; i < 3; i++) ucx.createWorker();
}

function dropContext(): void {
  const context = Ucx.open(open);
  for (let i = 0; i < 2; i++) context.createWorker();
}

function dropAll(): void {
  dropWorkers();
  dropContext();
}

async function closeAll(): Promise<void> {
  using context = Ucx.open(open);
  await using _ = context.createWorker();
  context.createWorker(); // closed with its context
  for (let i = 0; i < 3; i++) ucx.createWorker().abort();
}

/** Overwrites what earlier calls left on the stack. */
function useStack(deep: number): number {
  return deep === 0 ? 0 : 1 + useStack(deep - 1);
}

dropAll();
await closeAll();
const collectGarbage: unknown = Reflect.get(globalThis, "gc");
if (typeof collectGarbage !== "function") throw new Error("this script needs gc()");
for (let round = 0; round < 30; round++) {
  useStack(100);
  collectGarbage();
  await pause(5);
}
process.exit(0);
