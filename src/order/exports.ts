/**
 * What is out: exports that their consumers have not released, as far as anybody has looked.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/node_builtin.ts";
import { wantsLeakReports } from "../ffi/report_uncaught.ts";
import { onReclaim, reclaim } from "./reclaim.ts";
import { ReleaseOrder } from "./order.ts";

/** Something that a consumer has, or will have. */
export interface LiveExport {
  /** Looks whether the consumer has released it, and if so gives the memory back: in order, once. */
  isReleased(): boolean;
}

/** What is on the list, and how it ends. */
export interface Listed extends LiveExport {
  /** Its place in the list, so that taking it off costs next to nothing; -1 before it has one, and afterwards. */
  place: number;

  /** Whether consumers have let go of all of it. Changes nothing. */
  isLetGo(): boolean;

  /** Makes what comes next to its memory wait for its consumers' work. @returns false if that cannot be done now */
  order(order: ReleaseOrder): boolean;

  /** Gives its memory back. Called once. */
  finish(): void;
}

/** Being here keeps an export's memory alive. */
const live: Listed[] = [];

/** Puts an export on the list. */
export function addExport(one: Listed): void {
  one.place = live.push(one) - 1;
  if (!isWatched) watchEnd();
}

/** Looks at one export, for its `isReleased`. */
export function lookAt(one: Listed): boolean {
  if (one.place >= 0 && one.isLetGo()) end(one, new ReleaseOrder());
  return one.place < 0;
}

/** Ends what consumers had let go of before the first wait was ordered. */
function end(one: Listed, order: ReleaseOrder): void {
  if (one.place < 0 || !one.order(order)) return;
  const last = live.pop();
  if (last !== undefined && last !== one) { // the last one gets its place
    live[one.place] = last;
    last.place = one.place;
  }
  one.place = -1;
  one.finish();
}

/** Whether somebody will say at the end what is out, if anybody wants to know. */
let isWatched = false;

/** Says at the end of the program what consumers have never released, if `CAUSEWAY_LEAKS=1` asks for it. */
function watchEnd(): void {
  isWatched = true;
  if (!wantsLeakReports()) return;
  nodeBuiltin("node:process").once("exit", () => {
    const count = liveExports();
    if (count > 0) console.error(`Causeway: exports that their consumers have never released: ${count}`);
  });
}

/**
 * Looks at all of them, and again if one is gone: it may have been the last user of an import, whose producer is here too.
 * All are looked at, even if one fails, which stays: the first error comes last.
 */
function look(): void {
  if (live.length === 0) return;
  let errors: unknown[];
  let before: number;
  do {
    errors = [];
    before = live.length;
    // First all that consumers have let go of, then the waits, which these share: another thread may let go meanwhile, after
    // work that such a wait is too early for.
    const gone: Listed[] = [];
    for (const one of live) if (one.isLetGo()) gone.push(one);
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

onReclaim(look);

/** How many may be out before an export looks after them: so that looking costs each export a constant time. */
let enough = 64;

/** Looks at all exports if many are out. Before each export. */
export function lookIfMany(): void {
  if (live.length < enough) return;
  look();
  enough = Math.max(64, 2 * live.length);
}

/** Whoever knows of releases that are not seen here before it has looked itself. */
const others: (() => void)[] = [];

/** Plugs in what is to be done before the exports are counted. */
export function provideLook(lookElsewhere: () => void): void {
  others.push(lookElsewhere);
}

/**
 * How many exports have not been released by their consumers. Gives back the memory of those that have. If arrays are lent
 * to Python it waits for the interpreter's lock.
 */
export function liveExports(): number {
  for (const lookElsewhere of others) lookElsewhere();
  reclaim(); // which looks here too
  return live.length;
}
