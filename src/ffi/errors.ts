/**
 * Errors from before a library's own error codes exist: no runtime, no permission, no library, no symbol; and what such
 * codes are called.
 *
 * @module
 */

/** Native code or the network cannot be used: the runtime, the platform or a permission does not allow it. */
export class FfiError extends Error {
  /** `FfiError`. */
  override readonly name: string = "FfiError";
}

/** One place where a library was searched for, and why it could not be opened there. */
export interface LoadAttempt {
  /** The soname or path passed to `dlopen`. */
  readonly path: string;
  /** The dynamic linker's error message. */
  readonly error: string;
}

/** A native library could not be opened anywhere. The message lists every path tried and what to install. */
export class LibraryNotFoundError extends FfiError {
  /** `LibraryNotFoundError`. */
  override readonly name: string = "LibraryNotFoundError";
  /** The library's plain name, for example `libucp`. */
  readonly library: string;
  /** Every place that was tried, in order. */
  readonly attempts: readonly LoadAttempt[];
  /** What to install or set, as one sentence. */
  readonly remedy: string;

  /** Formats the attempts into the message. */
  constructor(library: string, attempts: readonly LoadAttempt[], remedy: string) {
    const tried = attempts.map(({ path, error }) => `  ${path === "" ? '""' : path}: ${error}`).join("\n");
    super(`Cannot open ${library}. ${remedy}\nTried, in this order:\n${tried}`);
    this.library = library;
    this.attempts = attempts;
    this.remedy = remedy;
  }
}

/** The error for taking the address of a resizable buffer. */
export function resizableBufferError(): TypeError {
  return new TypeError(
    "Cannot take the address of a resizable ArrayBuffer: its memory may move. " +
      "Copy it into one of fixed length first, for example with buffer.slice().",
  );
}

// law ffi/checkMemory: ffi/port
/**
 * Rejects memory that cannot be viewed.
 *
 * @param most bytes that the runtime can view at once
 * @throws {RangeError} for a length that is not a valid number of bytes, or is more than that, and for memory at NULL
 */
export function checkMemory(address: bigint, length: number, most: number): void {
  if (!Number.isSafeInteger(length) || length < 0) {
    throw new RangeError(`Cannot view ${length} bytes of memory: expected an integer of at least 0`);
  }
  if (address === 0n && length > 0) throw new RangeError(`Cannot view ${length} bytes of memory at NULL`);
  if (length > most) throw tooLongForArray(length, most);
}

/** The error for a view of memory that no array of this runtime can be. */
export function tooLongForArray(length: number, most: number): RangeError {
  return new RangeError(
    `Cannot view ${length} bytes of memory as one array: this runtime's have at most ${most}. View a part of it: ` +
      "view.sliced() of an array, MemoryBuffer.fromPointer(buffer.ptr + offset, bytes, { owner: buffer }) of a buffer",
  );
}

/**
 * Rejects a function that cannot be called: one runtime would crash at the first call.
 *
 * @throws {RangeError} for NULL
 */
export function checkFunction(address: bigint): void {
  if (address === 0n) throw new RangeError("Cannot call a function at NULL");
}

/** The name of the constant with this value, if there is one. No table is kept: errors are rare, and tables load. */
export function constantName(constants: Readonly<Record<string, number>>, value: number): string | undefined {
  return Object.keys(constants).find((name) => constants[name] === value);
}
