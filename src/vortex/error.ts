/**
 * Errors: what is wrong with an array, and in which of its nodes.
 *
 * @module
 */

/** Vortex data that cannot be read, or that this session does not know. */
export class VortexError extends Error {
  /** `VortexError`. */
  override readonly name: string = "VortexError";
  /**
   * Path of the node that the error is about, from the root of its array: `$.children[1].children[0]`. Anything outside
   * an array is named by its kind: `dtype`, `message`, `footer`, `file`.
   */
  readonly path: string;

  /** An error about a node. The message ends with the path, unless it is about the file as a whole. */
  constructor(path: string, text: string, options?: ErrorOptions) {
    super(path === "file" ? text : `${text} (at ${path})`, options);
    this.path = path;
  }
}

/** A place that an error can be about: a node, or a part of a file. */
export interface Place {
  /** An error about the place. */
  error(text: string, options?: ErrorOptions): VortexError;
  /** Throws an error about the place. @throws {VortexError} always */
  fail(text: string): never;
}

/** A place given by its path. */
export function placeAt(path: string): Place {
  const error = (text: string, options?: ErrorOptions) => new VortexError(path, text, options);
  return {
    error,
    fail(text) {
      throw error(text);
    },
  };
}
