/**
 * Waiting for what happens by itself, for as long as a loaded machine may need.
 *
 * @module
 */
import { setTimeout as delay } from "node:timers/promises";

/** How long a test waits for what should have happened long before, in milliseconds. */
const patience = 30_000;

/** Waits until something holds, or much too long: whoever asserts it afterwards says what is the case instead. */
export async function until(condition: () => boolean): Promise<void> {
  for (const end = performance.now() + patience; !condition() && performance.now() < end;) {
    await delay(5);
  }
}
