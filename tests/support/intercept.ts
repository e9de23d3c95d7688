/**
 * Intercepting the calls of a driver, real or simulated.
 *
 * @module
 */
import type { CudaDriver, DriverGroups } from "../../src/driver/driver.ts";

/**
 * Replaces functions of a driver; the replacements may call the originals.
 *
 * @returns a function that undoes it: the functions of a real driver are shared by everyone who has opened it
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
