/**
 * Many messages of random sizes between two processes, from and to memory of every place of their GPUs, real or
 * simulated: see `gpu/ucx_soak_child.ts`, which checks every byte.
 *
 * @module
 */
import { assert } from "@std/assert";
import { runScriptForJson } from "./child.ts";
import { check, fc } from "./property.ts";

/**
 * How much a process may grow from the second quarter of the messages to the last: less than if what is received by tag
 * and as active messages were kept.
 */
const residentLimit = 24 << 20;
/** The same for the memory in use on a GPU, for each process that uses it: pools grow by pieces of 32 MiB. */
const deviceLimit = 48 << 20;

/** What a process has gained. */
interface Grown {
  readonly resident: number;
  readonly device: number;
}

/** Exchanges messages with a process on another GPU, or the same one. @returns the transports */
export async function soak(which: "real" | "simulated", other: number, messages: number): Promise<readonly string[]> {
  let transports: readonly string[] = [];
  const run = async (seed: number) => {
    const args = ["first", which, `${other}`, `${seed}`, `${messages}`];
    const options = { args, timeout: 120_000 + 10 * messages };
    const script = new URL("../gpu/ucx_soak_child.ts", import.meta.url);
    const ended = await runScriptForJson(script, options) as {
      readonly sender: Grown;
      readonly receiver: Grown;
      readonly transports: readonly string[];
    }; // the script's output
    ({ transports } = ended);
    const users = other === 0 ? 2 : 1; // the first process is on GPU 0
    for (const { resident, device } of [ended.sender, ended.receiver]) {
      assert(resident < residentLimit && device < users * deviceLimit, JSON.stringify(ended));
    }
  };
  await check(fc.asyncProperty(fc.nat(1_000_000), run), 1e-9, { endOnFailure: true }); // once
  return transports;
}
