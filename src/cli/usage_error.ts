/**
 * What a person has asked for in the wrong way.
 *
 * @module
 */

/** Bad arguments: the command line says how it is meant, and exits with code 2. */
export class UsageError extends Error {
  override readonly name: string = "UsageError";
  /** How it is meant; nothing where the message says all. */
  readonly usage: string;

  constructor(message: string, usage = "") {
    super(message);
    this.usage = usage;
  }
}
