/**
 * Errors in how the command line was used.
 *
 * @module
 */

/** Bad arguments: the command line prints the correct usage, and exits with code 2. */
export class UsageError extends Error {
  override readonly name: string = "UsageError";
  /** The correct usage; empty if the message says everything. */
  readonly usage: string;

  constructor(message: string, usage = "") {
    super(message);
    this.usage = usage;
  }
}
