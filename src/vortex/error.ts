/**
 * What is wrong with an array, and in which of its nodes.
 *
 * @module
 */

/** Data of Vortex that cannot be read, or that this session does not know. */
export class VortexError extends Error {
  /** `VortexError`. */
  override readonly name: string = "VortexError";
  /**
   * The node that the error is about, from the root of its array: `$.children[1].children[0]`. What belongs to no array
   * is named by what it is: `dtype`, `message`, `footer`, `file`.
   */
  readonly path: string;

  /** An error of a node. The message ends in the path, unless it is about the file as a whole. */
  constructor(path: string, text: string, options?: ErrorOptions) {
    super(path === "file" ? text : `${text} (at ${path})`, options);
    this.path = path;
  }
}

/** Where something is that can be wrong: a node, or a part of a file. */
export interface Place {
  /** An error about it. */
  error(text: string, options?: ErrorOptions): VortexError;
  /** Throws an error about it. @throws {VortexError} always */
  fail(text: string): never;
}

/** A place by its path. */
export function placeAt(path: string): Place {
  const error = (text: string, options?: ErrorOptions) => new VortexError(path, text, options);
  return {
    error,
    fail(text) {
      throw error(text);
    },
  };
}
