/**
 * Two endpoints connected to each other.
 *
 * @module
 */
import { assert } from "@std/assert";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import type { Ucx } from "../../src/ucx/ucx.ts";

/** How two workers of a process connect. */
export const pairings = ["listener", "addresses"] as const;

/** Two endpoints connected to each other. */
export async function pair(
  ucx: Ucx,
  how: typeof pairings[number],
): Promise<{ here: UcxEndpoint; there: UcxEndpoint; close(): Promise<void> }> {
  const [one, other] = [ucx.createWorker(), ucx.createWorker()];
  const close = async () => {
    await Promise.all([one.close(), other.close()]);
  };
  if (how === "addresses") {
    const [here, there] = await Promise.all([one.connect(other.address), other.connect(one.address)]);
    return { here, there, close };
  }
  const listener = await one.listen();
  const [there, here] = await Promise.all([other.connect(listener), listener.accept()]);
  assert(here !== null);
  return { here, there, close };
}
