/**
 * Atomic operations with error handling.
 *
 * @module
 */
import { UcxError } from "../../src/ucx/error.ts";

/**
 * The result of an atomic operation on an endpoint that handles errors; undefined with versions of UCX that do it in
 * software only without error handling: they cancel it, and the error says so.
 */
export async function atomicIfSupported<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (error instanceof UcxError && error.message.includes("in software only without error handling")) return;
    throw error;
  }
}
