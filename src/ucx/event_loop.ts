/**
 * Turns of this thread's event loop, which all workers of the thread share.
 *
 * @module
 */
import { ffiPort, nodeBuiltin } from "../ffi/mod.ts";

/** For how long turns may follow each other before one serves sockets, in milliseconds. */
const serveEvery = 4;

/** When sockets were last served, by `performance.now()`. */
let lastServed = 0;
/** The turn that serves them, while it is waited for: an immediate meanwhile would keep the event loop from doing so. */
let serving: Promise<void> | null = null;

/** Whether sockets are being served: whoever goes on meanwhile leaves the event loop no time for them. */
export function isServing(): boolean {
  return serving !== null;
}

// law ucx/atNextTurn: ucx/event_loop
/**
 * Does something when the event loop has turned: as soon as it can, but every few milliseconds only after it has served
 * sockets, too. Deno does not serve them while one immediate follows the other.
 */
export function atNextTurn(act: () => void): void {
  const { turnWithSockets } = ffiPort();
  if (serving === null && turnWithSockets !== null && performance.now() - lastServed >= serveEvery) {
    serving = turnWithSockets().then(() => {
      serving = null;
      lastServed = performance.now();
    });
  }
  if (serving === null) nodeBuiltin("node:timers").setImmediate(act);
  else void serving.then(act);
}
