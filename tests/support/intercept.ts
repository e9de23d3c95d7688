/**
 * Looking at the calls of a driver, real or simulated.
 *
 * @module
 */
import type { CudaDriver } from "../../src/driver/driver.ts";

/**
 * Puts functions in the place of a driver's own, which they may call.
 *
 * @returns what undoes it: the functions of a real driver are the same for all who have opened it
 */
export function intercept<G extends keyof CudaDriver>(
  driver: CudaDriver,
  group: G,
  replace: (own: CudaDriver[G]) => Partial<CudaDriver[G]>,
): () => void {
  const own = driver[group];
  const put = (value: CudaDriver[G]) => Object.defineProperty(driver, group, { value, configurable: true });
  put({ ...own, ...replace(own) });
  return () => put(own);
}
