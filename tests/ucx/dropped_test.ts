/** Workers and contexts that are dropped without `close` are freed, but none that has a pending promise. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { ContextResources } from "../../src/ucx/context_resources.ts";
import { progressModes } from "../../src/ucx/progress.ts";
import { patiently, runScript, runScriptForJson } from "../support/child.ts";
import { scriptedResources, ScriptedUcp } from "./scripted_ucp.ts";

const script = new URL("./dropped_child.ts", import.meta.url);

/** What the script prints. */
interface Result {
  readonly before: Readonly<Record<string, number>>;
  readonly most: Readonly<Record<string, number>>;
  readonly after: Readonly<Record<string, number>>;
}

/**
 * Makes glibc return freed memory to the system, so that only unfreed memory stays: by default it keeps blocks
 * as large as our messages. And keeps V8's young generation small, which otherwise grows by 10 MiB at some time, once.
 */
const frugal = {
  MALLOC_ARENA_MAX: "1",
  MALLOC_MMAP_THRESHOLD_: "65536",
  MALLOC_TRIM_THRESHOLD_: "65536",
  DENO_V8_FLAGS: "--max-semi-space-size=1",
};

for (const [count, what] of [[120, "workers"], [24, "contexts"]] as const) {
  test(`${count} ${what} that are dropped are freed: descriptors, threads and memory`, patiently, async () => {
    const options = {
      args: [what],
      gc: true,
      env: { ...frugal, CAUSEWAY_LEAKS: undefined, UCX_LOG_LEVEL: "fatal" },
      timeout: 240_000,
    };
    const { before, most, after } = await runScriptForJson(script, options) as Result; // the script's output
    for (const [kind, first = NaN] of Object.entries(before)) {
      assert((after[kind] ?? NaN) <= 1.1 * first, `${kind}: ${first}, at most ${most[kind]}, then ${after[kind]}`);
    }
  });
}

for (const mode of progressModes) {
  test(`a worker with a pending promise is not collected: ${mode}`, patiently, async () => {
    const awaited = new URL("./awaited_child.ts", import.meta.url);
    const outcomes = await runScriptForJson(awaited, { args: [mode], gc: true, env: { UCX_LOG_LEVEL: "fatal" } });
    const waits = Object.entries(outcomes as Readonly<Record<string, unknown>>); // the script's output
    assertEquals(waits.length, 14);
    for (const [what, outcome] of waits) assertEquals(outcome, [1, 2, 3, ""], what);
  });
}

test("CAUSEWAY_LEAKS=1 reports dropped workers and contexts, with where they were created", patiently, async () => {
  const leaked = new URL("./leaked_child.ts", import.meta.url);
  const env = { CAUSEWAY_LEAKS: "1", UCX_LOG_LEVEL: "fatal" };
  const { code, stderr } = await runScript(leaked, { gc: true, env });
  assertEquals(code, 0, stderr);
  const reports = stderr.split("Causeway: a ").slice(1).map((report) => {
    const [first = "", ...callers] = report.trimEnd().split("\n");
    const [made = "", by = ""] = callers.filter((line) => !line.includes("/src/ucx/ucx.ts"));
    return [first, /at (\w+) .*leaked_child/.exec(made)?.[1], /at (\w+) .*leaked_child/.exec(by)?.[1]].join();
  });
  const reportOf = (what: string) => `${what} was never closed; freed by garbage collection. It was made`;
  const [worker, context] = ["dropWorkers", "dropContext"].map((by) => `${by},dropAll`);
  assertEquals(reports.toSorted(), [
    `${reportOf("Ucx")},${context}`,
    `${reportOf("UcxWorker")},${context}`,
    `${reportOf("UcxWorker")},${context}`,
    `${reportOf("UcxWorker")},${worker}`,
    `${reportOf("UcxWorker")},${worker}`,
    `${reportOf("UcxWorker")},${worker}`,
  ]);
  const quiet = await runScript(leaked, { gc: true, env: { ...env, CAUSEWAY_LEAKS: undefined } });
  assertEquals([quiet.code, quiet.stderr], [0, ""]);
});

test("the end of a context releases what a collected worker has left, first of all the data that it borrowed", () => {
  const ucp = new ScriptedUcp();
  const resources = scriptedResources(ucp);
  resources.borrowed.add(5n);
  const context = new ContextResources(ucp.functions, 1n, "");
  context.add(resources, { abort: () => {} }); // as little as of one that was collected
  context.close();
  const expected = ["ucp_am_data_release", "ucp_worker_destroy", "ucp_cleanup"];
  assertEquals(ucp.log.filter((call) => expected.includes(call)), expected);
});
