/**
 * What a program is told of its leaks, and of errors that nobody is there to catch: those of what the garbage collector or
 * the event loop gives back.
 *
 * @module
 */
import { ffiPort } from "./port.ts";

/** Whether the environment asks for reports of leaks on the console: `CAUSEWAY_LEAKS=1`. */
export function wantsLeakReports(): boolean {
  return ffiPort().env("CAUSEWAY_LEAKS") === "1";
}

/** Says on the console what went wrong, where {@linkcode wantsLeakReports}; the program goes on in any case. */
export function reportUncaught(what: string, error: unknown): void {
  if (wantsLeakReports()) console.error(`Causeway: ${what}:`, error);
}
