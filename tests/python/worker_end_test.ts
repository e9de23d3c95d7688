/** What serves a Worker in Python ends with the Worker: threads, descriptors, coroutines. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { isBun, patiently, runScriptForJson } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython();
const missing = typeof found === "string" ? found : null;
const executable = typeof found === "string" ? "" : found.executable;
const script = new URL("./worker_end_child.ts", import.meta.url);

// Each Worker left two threads and four descriptors behind, until the process had no more.
const ways = [
  ...["call", "calls that have not begun", "coroutine", "pending coroutine"],
  ...["function", "function on a thread", "inside a function", "awaited function on a thread"],
];
for (const way of ways) {
  for (const end of ["terminate", "exit"]) {
    if (/pending|not begun/.test(way) && end === "exit") continue; // a Worker that waits does not exit
    if (way === "inside a function" && end === "terminate" && !isBun) continue; // Deno 2.9.6 did not end it in 100 s
    const [title, { skip }] = needs(missing, `Workers leave no thread and no descriptor behind: ${way}, ${end}`);
    test(title, { skip, ...patiently }, async () => {
      const { counts: [first, last], errors, answer } = await runScriptForJson(script, {
        args: [executable, way, end],
      }) as { counts: [number, number][]; errors: string[]; answer: number };
      assert(first !== undefined && last !== undefined);
      // Deno keeps two of each Worker that has a callback when it ends (2.9.6). The runtimes' own pools vary: by 6
      // threads where the processors are busy.
      const kept = isBun || !way.includes("function") ? 0 : 20;
      const grown = `threads and descriptors: ${first}, and after ten more Workers ${last}`;
      assert(last[0] <= first[0] + 8 && last[1] <= first[1] + kept + 4, grown);
      assertEquals(errors, way === "function" ? ["JavaScript has ended: its functions cannot be called any more"] : []);
      assertEquals(answer, 3);
    });
  }
}
