/**
 * The list of live exports: those whose consumers have not released them, as of the last poll.
 *
 * @module
 */
import { nodeBuiltin, throwFirst, wantsLeakReports } from "../ffi/mod.ts";
import { ReleaseOrder } from "./release_order.ts";

/** An export that a consumer holds or will hold. */
export interface LiveExport {
  /** Whether the consumer has released it. If so, orders and unpins its memory, once. */
  isReleased(): boolean;
}

/** An export on the list, and how it ends. */
export interface ExportEntry extends LiveExport {
  /** Its index in the list, so that it can be removed in constant time; -1 while it is not on the list. */
  index: number;

  /** Whether its consumers have released all of it. A pure query. */
  isReleasedByConsumer(): boolean;

  /** Makes the next use of its memory wait for its consumers' work. @returns false if that cannot be done now */
  order(order: ReleaseOrder): boolean;

  /** Unpins its memory. Called once. */
  finish(): void;
}

/** The list keeps the exports' memory alive. */
const live: ExportEntry[] = [];

/** The number of live exports. */
export function exportCount(): number {
  return live.length;
}

// law order/addExport: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/** Puts an export on the list. */
export function addExport(one: ExportEntry): void {
  one.index = live.push(one) - 1;
  if (!isWatched) watchEnd();
}

/** Polls one export: the implementation of its `isReleased`. */
export function pollExport(one: ExportEntry): boolean {
  if (one.index >= 0 && one.isReleasedByConsumer()) end(one, new ReleaseOrder());
  return one.index < 0;
}

// law order/end: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/** Ends an export whose consumers had released it before the first wait was ordered. */
function end(one: ExportEntry, order: ReleaseOrder): void {
  if (one.index < 0 || !one.order(order)) return;
  const last = live.pop();
  if (last !== undefined && last !== one) { // the last one takes its index
    live[one.index] = last;
    last.index = one.index;
  }
  one.index = -1;
  one.finish();
}

/**
 * Libraries whose releases need a separate poll: Python, once it is open. The list is process-wide, as that of the
 * exports is: a consumer is a library of this process, whichever Cuda or view an export belongs to, and `liveExports()`
 * counts them all. There is one Python, and nothing closes it.
 */
const others: (() => void)[] = [];

/**
 * Registers a poll that runs before the exports are counted. Called by code that opens a library in which consumers
 * release.
 */
export function alsoPoll(poll: () => void): void {
  others.push(poll);
}

/** Polls those libraries. */
export function pollOthers(): void {
  for (const poll of others) poll();
}

/** Whether the exit hook for the leak report is installed. */
let isWatched = false;

/** Reports exports that were never released when the program ends, if `CAUSEWAY_LEAKS=1` is set. */
function watchEnd(): void {
  isWatched = true;
  if (!wantsLeakReports()) return;
  nodeBuiltin("node:process").once("exit", () => {
    pollOthers();
    pollAll();
    const count = live.length;
    if (count > 0) console.error(`Causeway: exports never released by their consumers: ${count}`);
  });
}

// law order/pollAll: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/**
 * Polls all live exports, and again if one has ended: it may have been the last user of an import whose producer is in
 * this process, too. One whose wait cannot be ordered stays on the list. No failure stops the rest: the first error is
 * thrown at the end.
 */
export function pollAll(): void {
  if (live.length === 0) return;
  const failedToFree: unknown[] = [];
  let failedToOrder: unknown[];
  let before: number;
  do {
    before = live.length;
    // First collect all released exports, then order the waits, which they share: another thread may release meanwhile,
    // after work for which such a wait is too early.
    const gone: ExportEntry[] = [];
    for (const one of live) if (one.isReleasedByConsumer()) gone.push(one);
    const order = new ReleaseOrder();
    failedToOrder = []; // by those that stay on the list, and are tried again if this is not the last round
    for (const one of gone) {
      try {
        end(one, order);
      } catch (error) {
        (one.index < 0 ? failedToFree : failedToOrder).push(error);
      }
    }
  } while (live.length < before);
  throwFirst([...failedToFree, ...failedToOrder]);
}

/**
 * How many exports may be live before a new one polls all: twice as many as the last poll left, so that the cost of
 * each is constant.
 */
let enough = 64;

// law order/pollIfMany: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/** Polls all exports if many are live. Called before every new export. */
export function pollIfMany(): void {
  if (live.length < enough) return;
  pollAll();
  enough = Math.max(64, 2 * live.length);
}
