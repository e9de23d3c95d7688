/**
 * The error for what is no stream, apart from the classes: those whose calls need a stream cannot import them.
 *
 * @module
 */
import { showGiven } from "../layout/mod.ts";

/** The error for what is no stream. It is a device most often. */
export function noStream(given: unknown, doing: string): TypeError {
  const isDevice = typeof given === "object" && given !== null && "createStream" in given;
  const way = isDevice ? ": device.createStream() makes a stream of it" : "";
  return new TypeError(`${doing}: expected a CudaStream, got ${showGiven(given)}${way}`);
}
