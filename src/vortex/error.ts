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

/** Bytes that contradict themselves: an index out of bounds, a run that ends before it begins. */
export class DataError extends Error {
  /** The name of the class. */
  override readonly name = "DataError";
}

/** Runs a codec or an operation on decoded arrays. These know no nodes; their errors are rethrown as the node's. */
export function inNode<T>(node: Place, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (error instanceof DataError || error instanceof RangeError) throw node.error(error.message, { cause: error });
    throw error;
  }
}

/** Throws the error of what is being read, with this text: given to code that does not know what that belongs to. */
export type Fail = (problem: string) => never;

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
