/**
 * The error of every exchange protocol.
 *
 * @module
 */

/** An array cannot be exported or imported as requested. Nothing has been taken, and nothing has to be returned. */
export class ExchangeError extends Error {
  /** `ExchangeError`. */
  override readonly name: string = "ExchangeError";
}
