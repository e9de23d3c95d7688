/**
 * What is out: exports that their consumers have not released, as far as anybody has looked.
 *
 * @module
 */
import { builtin } from "../ffi/builtin.ts";
import { ffiPort } from "../ffi/port.ts";
import { onReclaim } from "../memory/reclaim.ts";

/** Something that a consumer has, or will have. */
export interface LiveExport {
  /** Looks whether the consumer has released it, and if so gives the memory back: in order, once. */
  isReleased(): boolean;
}

/** Being here keeps an export's memory alive. */
const live = new Set<LiveExport>();

/** Puts an export on the list. */
export function addExport(one: LiveExport): void {
  live.add(one);
  if (!isWatched) watchEnd();
}

/** Whether somebody will say at the end what is out, if anybody wants to know. */
let isWatched = false;

/** Says at the end of the program what consumers have never released, if `CAUSEWAY_LEAKS=1` asks for it. */
function watchEnd(): void {
  isWatched = true;
  if (ffiPort().env("CAUSEWAY_LEAKS") !== "1") return;
  builtin("node:process").once("exit", () => {
    const count = liveExports();
    if (count > 0) console.error(`Causeway: exports that their consumers have never released: ${count}`);
  });
}

/** Takes an export that was released off the list. */
export function removeExport(one: LiveExport): void {
  live.delete(one);
}

/**
 * Looks at all of them, and again if one is gone: it may have been the last user of an import, whose producer is here too.
 * All are looked at, even if one fails, which stays: the first error comes last.
 */
function look(): void {
  if (live.size === 0) return;
  let errors: unknown[];
  let before: number;
  do {
    errors = [];
    before = live.size;
    for (const one of live) {
      try {
        one.isReleased();
      } catch (error) {
        errors.push(error);
      }
    }
  } while (live.size < before);
  if (errors.length > 0) throw errors[0];
}

onReclaim(look);

/** How many may be out before an export looks after them: so that looking costs each export a constant time. */
let enough = 64;

/** Looks at all exports if many are out. Before each export. */
export function lookIfMany(): void {
  if (live.size < enough) return;
  look();
  enough = Math.max(64, 2 * live.size);
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
  look();
  return live.size;
}
