/**
 * Errors that nobody is there to catch: those of what the garbage collector or the event loop gives back.
 *
 * @module
 */
import { ffiPort } from "./port.ts";

/** Says on the console what went wrong if `CAUSEWAY_LEAKS=1` asks for it; the program goes on in any case. */
export function reportUncaught(what: string, error: unknown): void {
  if (ffiPort().env("CAUSEWAY_LEAKS") === "1") console.error(`Causeway: ${what}:`, error);
}
