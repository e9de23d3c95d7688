/**
 * UCX's timer wakes a worker only if it has a peer whose end the system does not report by itself. With the timer two
 * idle workers took 0.1 to 0.25 % of a processor, now no more than the runtime itself.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";

const script = new URL("./keepalive_timer_child.ts", import.meta.url);

interface Facts {
  readonly atFirst: boolean;
  readonly rested: boolean;
  readonly stillRested: boolean;
  readonly end: boolean[] | number | null;
}

let all: Promise<Map<string, Facts>> | undefined;

/** What a mode of the script prints. All of them run at once: they do little but wait. */
async function run(mode: string): Promise<Facts | undefined> {
  all ??= Promise.all(
    ["address", "host", "unchecked", "process", "client"].map(async (mode) => {
      const facts: Facts = await runScriptForJson(script, { args: [mode] }) as Facts;
      return [mode, facts] as const;
    }),
  ).then((ends) => new Map(ends));
  return (await all).get(mode);
}

test("idle workers of one process stop UCX's timer, unless connected to an unknown process", patiently, async () => {
  assertEquals(await run("address"), { atFirst: true, rested: true, stillRested: true, end: [true, false] });
});

test("an idle listener on this machine and its clients stop UCX's timer", patiently, async () => {
  assertEquals(await run("host"), { atFirst: true, rested: true, stillRested: true, end: null });
});

test("a worker of an unknown process keeps its peer's timer running", patiently, async () => {
  assertEquals(await run("unchecked"), { atFirst: true, rested: false, stillRested: false, end: null });
});

for (const [mode, how] of Object.entries({ process: "by its address", client: "by our listener" })) {
  test(`an idle worker is notified within 3 s of the death of a process: connected ${how}`, patiently, async () => {
    const { end, ...facts } = await run(mode) ?? { end: null };
    assertEquals(facts, { atFirst: true, rested: true, stillRested: true });
    assert(typeof end === "number" && end < 3000, `it took ${end} ms`);
  });
}
