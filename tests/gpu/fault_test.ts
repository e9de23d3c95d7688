/**
 * After an illegal address: what fails, how it is reported, and what must not fail. On a simulated GPU and a real one.
 */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "../support/child.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

type Results = Readonly<
  Record<string, string | { code?: string; call?: string; isSticky?: boolean; cause?: string; message?: string }>
>;

const script = new URL("./fault_child.ts", import.meta.url);

/** What fails with the sticky error. */
const failing = [
  "completed(), called before the error is known",
  "the first wait",
  "synchronize()",
  "completed()",
  "event.completed()",
  "isDone",
  "createStream()",
  "allocate",
  "launch",
  "launch a graph",
];

async function law(where: "real" | "simulated"): Promise<void> {
  const results = await runScriptForJson(script, { args: [where] }) as Results; // the script's output
  let first: string | undefined;
  for (const [what, outcome] of Object.entries(results)) {
    const seen = `${what}: ${JSON.stringify(outcome)}`;
    if (!failing.includes(what)) {
      assertEquals(outcome, "ok", seen);
      continue;
    }
    assert(typeof outcome === "object", seen);
    const { code, isSticky, message = "", call = "", cause } = outcome;
    assertEquals([code, isSticky], ["CUDA_ERROR_ILLEGAL_ADDRESS", true], seen);
    assertMatch(message, /The context is lost.*Restart the process/, seen);
    // The simulator reports the cause, and is not recommended there.
    assertEquals(/PTX line \d+: illegal address/.test(message), where === "simulated", seen);
    assertEquals(/run it under compute-sanitizer or on Cuda\.simulate\(\)/.test(message), where === "real", seen);
    if (first === undefined) {
      assertMatch(message, /the first to report it/, seen);
      assertEquals(cause, where === "real" ? "none" : "PtxFault", seen);
      first = call;
    } else {
      assertMatch(message, new RegExp(`first reported by ${first}`), seen);
      assertEquals(cause, "CudaError", seen);
    }
  }
  assertEquals(Object.keys(results).filter((what) => failing.includes(what)), failing);
}

const title = "after an illegal address all work reports it, and closing throws nothing";

test(`simulated: ${title}`, patiently, () => law("simulated"));

const [name, options] = needs(missingGpus(), title);
test(name, { ...patiently, ...options }, () => law("real"));
