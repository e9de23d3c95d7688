/**
 * Reports of leaks, and of errors that no caller can catch: those of releases by the garbage collector or the event
 * loop.
 *
 * @module
 */
import { ffiPort } from "./port.ts";

/** Whether the environment asks for reports of leaks on the console: `CAUSEWAY_LEAKS=1`. */
export function wantsLeakReports(): boolean {
  return ffiPort().env("CAUSEWAY_LEAKS") === "1";
}

/** Reports an error on the console if {@linkcode wantsLeakReports}; the program continues in any case. */
export function reportUncaught(what: string, error: unknown): void {
  if (wantsLeakReports()) console.error(`Causeway: ${what}:`, error);
}
