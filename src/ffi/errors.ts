/**
 * What goes wrong before a library's own error codes exist: no runtime, no permission, no library, no symbol.
 *
 * @module
 */

/** Native code cannot be called: the runtime, the platform or a permission does not allow it. */
export class FfiError extends Error {
  override readonly name: string = "FfiError";
}

/** One place where a library was looked for, and why it could not be opened there. */
export interface LoadAttempt {
  /** The soname or path that was given to `dlopen`. */
  readonly path: string;
  /** What the dynamic linker answered. */
  readonly error: string;
}

/** A native library could not be opened anywhere. The message lists every path tried and what to install. */
export class LibraryNotFoundError extends FfiError {
  override readonly name: string = "LibraryNotFoundError";
  /** The library's plain name, for example `libucp`. */
  readonly library: string;
  /** Every place that was tried, in order. */
  readonly attempts: readonly LoadAttempt[];
  /** What to install or set, as one sentence. */
  readonly remedy: string;

  constructor(library: string, attempts: readonly LoadAttempt[], remedy: string) {
    const tried = attempts.map(({ path, error }) => `  ${path}: ${error}`).join("\n");
    super(`Cannot open ${library}. ${remedy}\nTried, in this order:\n${tried}`);
    this.library = library;
    this.attempts = attempts;
    this.remedy = remedy;
  }
}

/** What taking the address of a resizable buffer throws. */
export function resizableBufferError(): TypeError {
  return new TypeError(
    "Cannot take the address of a resizable ArrayBuffer: its memory may move. " +
      "Copy it into one of fixed length first, for example with buffer.slice().",
  );
}
