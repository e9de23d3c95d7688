/**
 * Waiting for a promise, or for a signal that ends the wait.
 *
 * @module
 */

// law unix/abortable: unix/descriptors, unix/socket
/**
 * Waits for a promise, whose work continues if the signal aborts first.
 *
 * @throws the signal's reason, if it is aborted first
 */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
