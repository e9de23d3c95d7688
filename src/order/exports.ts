/**
 * The list of live exports: those that their consumers have not released, as of the last poll.
 *
 * @module
 */
import { failuresOf, nodeBuiltin, throwFirst, wantsLeakReports } from "../ffi/mod.ts";
import { ReleaseOrder } from "./order.ts";

/** An export that a consumer has, or will have. */
export interface LiveExport {
  /** Whether the consumer has released it. If so, its memory is ordered and unpinned, once. */
  isReleased(): boolean;
}

/** An export on the list, and how it ends. */
export interface ExportEntry extends LiveExport {
  /** Its index in the list, so that it can be removed in constant time; -1 before and afterwards. */
  index: number;

  /** Whether its consumers have released all of it. A pure query. */
  isReleasedByConsumer(): boolean;

  /** Makes what comes next to its memory wait for its consumers' work. @returns false if that cannot be done now */
  order(order: ReleaseOrder): boolean;

  /** Unpins its memory. Called once. */
  finish(): void;
}

/** The list keeps the exports' memory alive. */
const live: ExportEntry[] = [];

/** How many there are. */
export function exportCount(): number {
  return live.length;
}

// law order/addExport: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/** Puts an export on the list. */
export function addExport(one: ExportEntry): void {
  one.index = live.push(one) - 1;
  if (!isWatched) watchEnd();
}

/** Polls one export, for its `isReleased`. */
export function pollExport(one: ExportEntry): boolean {
  if (one.index >= 0 && one.isReleasedByConsumer()) end(one, new ReleaseOrder());
  return one.index < 0;
}

// law order/end: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/** Ends an export that its consumers had released before the first wait was ordered. */
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
 * Libraries whose releases are found by a poll of their own: Python's, once it is open. A list of the process, as that
 * of the exports is: a consumer is a library of this process, whichever Cuda or view an export is of, and
 * `liveExports()` counts them all. There is one Python, and nothing closes it.
 */
const others: (() => void)[] = [];

/**
 * Has a library polled before the exports are counted. Called by the code that opens one in which consumers release.
 */
export function alsoPoll(poll: () => void): void {
  others.push(poll);
}

/** Polls those libraries. */
export function pollOthers(): void {
  for (const poll of others) poll();
}

/** Whether the hook for the report at the end of the program is in place. */
let isWatched = false;

/** Reports at the end of the program what consumers have never released, if `CAUSEWAY_LEAKS=1` asks for it. */
function watchEnd(): void {
  isWatched = true;
  if (!wantsLeakReports()) return;
  nodeBuiltin("node:process").once("exit", () => {
    pollOthers();
    pollAll();
    const count = live.length;
    if (count > 0) console.error(`Causeway: exports that their consumers have never released: ${count}`);
  });
}

// law order/pollAll: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/**
 * Polls all of them, and again if one has ended: it may have been the last user of an import whose producer is in this
 * process, too. All are polled, even if one fails, which stays on the list: then the first error is thrown at the end.
 */
export function pollAll(): void {
  if (live.length === 0) return;
  let errors: unknown[];
  let before: number;
  do {
    before = live.length;
    // First all that have been released, then the waits, which these share: another thread may release meanwhile, after
    // work for which such a wait is too early.
    const gone: ExportEntry[] = [];
    for (const one of live) if (one.isReleasedByConsumer()) gone.push(one);
    const order = new ReleaseOrder();
    errors = failuresOf(gone, (one) => end(one, order));
  } while (live.length < before);
  throwFirst(errors);
}

/**
 * How many may be live before an export polls all: twice as many as were left, so that the cost of each is constant.
 */
let enough = 64;

// law order/pollIfMany: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/** Polls all exports if many are live. Called before each export. */
export function pollIfMany(): void {
  if (live.length < enough) return;
  pollAll();
  enough = Math.max(64, 2 * live.length);
}
