/**
 * Errors of array files.
 *
 * @module
 */

/** Thrown when a file cannot be read as arrays, or an array cannot be written. The message is one line. */
export class NpyError extends Error {
  /** `NpyError`. */
  override readonly name: string = "NpyError";
}

/** The same error, prefixed with the place that it concerns. Other errors are returned unchanged. */
export function about(place: string, error: unknown): unknown {
  return error instanceof NpyError ? new NpyError(`Cannot read ${place}: ${error.message}`, { cause: error }) : error;
}

/** The beginning of untrusted text, in printable characters. */
export function excerpt(text: string): string {
  const clean = text.replace(/[^\x20-\x7e]/g, "?");
  return clean.length <= 60 ? clean : `${clean.slice(0, 57)}...`;
}
