/**
 * Atomic operations with error handling.
 *
 * @module
 */
import { UcxError } from "../../src/ucx/error.ts";

/** The result of operations that this version of UCX cancels. With 1.22 their endpoint ends, too. */
export const unsupported = "unsupported";

/**
 * The result of an atomic operation on an endpoint that handles errors. Some versions of UCX do it in software only
 * without error handling: they cancel it, and the error says so.
 */
export async function atomicIfSupported<T>(operation: Promise<T>): Promise<T | typeof unsupported> {
  try {
    return await operation;
  } catch (error) {
    if (error instanceof UcxError && error.message.includes("in software only without error handling")) {
      return unsupported;
    }
    throw error;
  }
}
