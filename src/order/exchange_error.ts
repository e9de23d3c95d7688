/**
 * The error of every exchange protocol.
 *
 * @module
 */

/** An array cannot be handed over, or taken, as asked. Nothing has been taken, and nothing needs to be given back. */
export class ExchangeError extends Error {
  /** `ExchangeError`. */
  override readonly name: string = "ExchangeError";
}
