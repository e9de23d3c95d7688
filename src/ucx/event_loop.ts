/**
 * Turns of this thread's event loop, which all workers of the thread share.
 *
 * @module
 */
import { ffiPort, nodeBuiltin } from "../ffi/mod.ts";
import { findSocketNews } from "../unix/mod.ts";

/** For how long turns may follow each other before one serves sockets for which something has come, in milliseconds. */
const serveEvery = 2;
/** The same, whether anything is known to have come or not: how the runtime learns of it is its own affair. */
const serveAtLeastEvery = 50;
/** The same, where it cannot be known, or what has come is another thread's affair: it is still there when served. */
const serveUnknownEvery = 4;

/** What tells whether something has come; undefined before it was looked for. */
let hasNews: (() => boolean) | null | undefined;
/** When sockets were last served, and last asked about, by `performance.now()`. */
let lastServed = 0;
let lastAsked = 0;
/** For how long turns may follow each other before one serves sockets that are said to have news. */
let every = serveEvery;
/** The turn that serves them, while it is waited for: an immediate meanwhile would keep the event loop from doing so. */
let serving: Promise<void> | null = null;

/** Whether sockets are being served: whoever goes on meanwhile leaves the event loop no time for them. */
export function isServing(): boolean {
  return serving !== null;
}

/**
 * Looks once for what tells that something has come for sockets. To be called before UCX makes descriptors of the same
 * kind, for which something comes all the time.
 */
export function lookForSockets(): void {
  if (hasNews === undefined) hasNews = ffiPort().turnWithSockets === null ? null : findSocketNews();
}

// law ucx/atNextTurn: ucx/event_loop
/**
 * Does something when the event loop has turned: as soon as it can, but where something has come for sockets only after
 * it has served them, too. Deno does not serve them while one immediate follows the other.
 */
export function atNextTurn(act: () => void): void {
  const { turnWithSockets } = ffiPort();
  if (serving === null && turnWithSockets !== null && areDue(performance.now())) {
    serving = turnWithSockets().then(() => {
      serving = null;
      lastServed = performance.now();
      every = hasNews?.() ? serveUnknownEvery : serveEvery;
    });
  }
  if (serving === null) nodeBuiltin("node:timers").setImmediate(act);
  else void serving.then(act);
}

// law ucx/areDue: ucx/event_loop
/** Whether sockets are to be served now. */
function areDue(now: number): boolean {
  const since = now - lastServed;
  if (hasNews === null || hasNews === undefined) return since >= serveUnknownEvery;
  if (since >= serveAtLeastEvery) return true;
  if (since < every || now - lastAsked < every) return false;
  lastAsked = now;
  return hasNews();
}
