/**
 * Waiting for asynchronous events, for as long as a loaded machine may need.
 *
 * @module
 */
import { setTimeout as delay } from "node:timers/promises";

/** How long a test waits for an event that should have occurred long before, in milliseconds. */
const patience = 30_000;

/** Waits until a condition holds, or far too long: the assertion that follows reports the actual state instead. */
export async function until(condition: () => boolean): Promise<void> {
  for (const end = performance.now() + patience; !condition() && performance.now() < end;) {
    await delay(5);
  }
}
