/**
 * What is out: exports that their consumers have not released, as far as anybody has looked.
 *
 * @module
 */
import { nodeBuiltin, wantsLeakReports } from "../ffi/mod.ts";
import { ReleaseOrder } from "./order.ts";

/** Something that a consumer has, or will have. */
export interface LiveExport {
  /** Looks whether the consumer has released it, and if so gives the memory back: in order, once. */
  isReleased(): boolean;
}

/** What is on the list, and how it ends. */
export interface ExportEntry extends LiveExport {
  /** Its place in the list, so that taking it off costs next to nothing; -1 before it has one, and afterwards. */
  index: number;

  /** Whether consumers have released all of it. Changes nothing. */
  isReleasedByConsumer(): boolean;

  /** Makes what comes next to its memory wait for its consumers' work. @returns false if that cannot be done now */
  order(order: ReleaseOrder): boolean;

  /** Gives its memory back. Called once. */
  finish(): void;
}

/** Being here keeps an export's memory alive. */
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

/** Looks at one export, for its `isReleased`. */
export function pollExport(one: ExportEntry): boolean {
  if (one.index >= 0 && one.isReleasedByConsumer()) end(one, new ReleaseOrder());
  return one.index < 0;
}

// law order/end: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/** Ends what consumers had released before the first wait was ordered. */
function end(one: ExportEntry, order: ReleaseOrder): void {
  if (one.index < 0 || !one.order(order)) return;
  const last = live.pop();
  if (last !== undefined && last !== one) { // the last one gets its place
    live[one.index] = last;
    last.index = one.index;
  }
  one.index = -1;
  one.finish();
}

/** Whoever learns of releases only when it polls by itself: Python does, once it is open. */
const others: (() => void)[] = [];

/** Has something polled before the exports are counted. For who opens a library in which consumers release. */
export function alsoPoll(poll: () => void): void {
  others.push(poll);
}

/** Polls where releases are learnt of in another way than by the marks of the exports. */
export function pollOthers(): void {
  for (const poll of others) poll();
}

/** Whether somebody will say at the end what is out, if anybody wants to know. */
let isWatched = false;

/** Says at the end of the program what consumers have never released, if `CAUSEWAY_LEAKS=1` asks for it. */
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
 * Looks at all of them, and again if one is gone: it may have been the last user of an import, whose producer is here too.
 * All are looked at, even if one fails, which stays: the first error comes last.
 */
export function pollAll(): void {
  if (live.length === 0) return;
  let errors: unknown[];
  let before: number;
  do {
    errors = [];
    before = live.length;
    // First all that consumers have released, then the waits, which these share: another thread may release meanwhile, after
    // work that such a wait is too early for.
    const gone: ExportEntry[] = [];
    for (const one of live) if (one.isReleasedByConsumer()) gone.push(one);
    const order = new ReleaseOrder();
    for (const one of gone) {
      try {
        end(one, order);
      } catch (error) {
        errors.push(error);
      }
    }
  } while (live.length < before);
  if (errors.length > 0) throw errors[0];
}

/** How many may be live before an export polls them: so that polling costs each export a constant time. */
let enough = 64;

// law order/pollIfMany: order/refusals, dlpack/export, dlpack/programs, order/reclaim, memory/collection
/** Looks at all exports if many are out. Before each export. */
export function pollIfMany(): void {
  if (live.length < enough) return;
  pollAll();
  enough = Math.max(64, 2 * live.length);
}
