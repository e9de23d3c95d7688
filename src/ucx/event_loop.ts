/**
 * Turns of this thread's event loop, which all workers of the thread share.
 *
 * @module
 */
import { ffiPort, nodeBuiltin } from "../ffi/mod.ts";
import { findSocketNews } from "../unix/mod.ts";

/** How long turns may follow each other before one serves sockets that have events, in milliseconds. */
const serveEvery = 2;
/** The same, whether or not any events are known: how the runtime learns of them is its own affair. */
const serveAtLeastEvery = 50;
/** The same, where it cannot be known, or the events are another thread's: they are still pending after a serve. */
const serveUnknownEvery = 4;

/** How many turns at most serve sockets one after the other: events of another thread stay pending. */
const maxServes = 4;

/** Tells whether sockets have events; undefined before the lookup. */
let hasNews: (() => boolean) | null | undefined;
/** When sockets were last served, or the process could end, and last queried, by `performance.now()`. */
let lastServed = 0;
let lastAsked = 0;
/** How long turns may follow each other before one serves sockets that report events. */
let every = serveEvery;
/**
 * The turn that serves them, or that lets the process end, while it is pending: an immediate meanwhile would keep the
 * event loop from doing so.
 */
let serving: Promise<void> | null = null;

/** Whether sockets are being served: spinning meanwhile leaves the event loop no time for them. */
export function isServing(): boolean {
  return serving !== null;
}

/**
 * Finds, once, the descriptors that report socket events. Must be called before UCX creates descriptors of the same
 * kind, which have events all the time.
 */
export function lookForSockets(): void {
  if (hasNews === undefined) hasNews = ffiPort().turnWithSockets === null ? null : findSocketNews();
}

// law ucx/atNextTurn: ucx/event_loop, ucx/uncaught
/**
 * Runs a callback once the event loop has turned: as soon as possible, but if sockets have events only after it has
 * served them, too. Deno does not serve them while one immediate follows the other, and Bun does not end then.
 */
export function atNextTurn(act: () => void): void {
  const { turnWithSockets, turnToEnd } = ffiPort();
  if (serving === null && turnWithSockets !== null && areDue(performance.now())) {
    serving = serveAll(turnWithSockets, hasNews ?? null).then(() => {
      serving = null;
      lastServed = performance.now();
      every = hasNews?.() ? serveUnknownEvery : serveEvery;
    });
  } else if (serving === null && turnToEnd !== null && performance.now() - lastServed >= serveAtLeastEvery) {
    serving = turnToEnd().then(() => {
      serving = null;
      lastServed = performance.now();
    });
  }
  if (serving === null) nodeBuiltin("node:timers").setImmediate(act);
  else void serving.then(act);
}

/**
 * How long {@linkcode turnIfDue} lets promises follow each other, in milliseconds; how often it looks, and since when.
 */
const turnEvery = 1;
const lookEvery = 16;
let looked = 0;
let turned = 0;

// law ucx/turnIfDue: ucx/message_queue
/** Settles when the event loop has turned; null if it need not yet. For loops whose promises are settled already. */
export function turnIfDue(): Promise<void> | null {
  if (++looked % lookEvery !== 0 || performance.now() - turned < turnEvery) return null;
  return new Promise((resolve) => {
    atNextTurn(() => {
      turned = performance.now();
      resolve();
    });
  });
}

// law ucx/serveAll: ucx/event_loop
/**
 * Serves sockets while they have events: what one turn begins, such as an answer, continues in the next. With one turn
 * each time, the slowest of a hundred requests beside messages of 1 MiB over TCP took 120 ms instead of 11 to 15 (Deno
 * 2.9.6, two processors).
 */
export async function serveAll(turnWithSockets: () => Promise<void>, hasNews: (() => boolean) | null): Promise<void> {
  let left = maxServes;
  do await turnWithSockets(); while (--left > 0 && hasNews?.());
}

// law ucx/areDue: ucx/event_loop
/** Whether sockets are due to be served. */
function areDue(now: number): boolean {
  const since = now - lastServed;
  if (hasNews === null || hasNews === undefined) return since >= serveUnknownEvery;
  if (since >= serveAtLeastEvery) return true;
  if (since < every || now - lastAsked < every) return false;
  lastAsked = now;
  return hasNews();
}
