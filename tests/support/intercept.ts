/**
 * Looking at the calls of a driver, real or simulated.
 *
 * @module
 */
import type { CudaDriver, DriverGroups } from "../../src/driver/driver.ts";

/**
 * Puts functions in the place of a driver's own, which they may call.
 *
 * @returns what undoes it: the functions of a real driver are the same for all who have opened it
 */
export function intercept<G extends keyof DriverGroups>(
  driver: CudaDriver,
  group: G,
  replace: (own: DriverGroups[G]) => Partial<DriverGroups[G]>,
): () => void {
  const own = driver[group];
  const put = (value: DriverGroups[G]) => Object.defineProperty(driver, group, { value, configurable: true });
  put({ ...own, ...replace(own) });
  return () => put(own);
}
