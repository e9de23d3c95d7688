/**
 * The error for a value that is not a stream, separate from the classes: modules whose calls need a stream cannot
 * import them.
 *
 * @module
 */
import { showGiven } from "../layout/mod.ts";

/** The error for a value that is not a stream. Most often it is a device. */
export function noStream(given: unknown, doing: string): TypeError {
  const isDevice = typeof given === "object" && given !== null && "createStream" in given;
  const way = isDevice ? ": device.createStream() makes a stream of it" : "";
  return new TypeError(`${doing}: expected a CudaStream, got ${showGiven(given)}${way}`);
}
