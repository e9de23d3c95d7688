/**
 * The simulator behind a Cuda.
 *
 * @module
 */
import { assert } from "@std/assert";
import type { Cuda } from "../../mod.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";

/** The simulated driver of a Cuda, which `Cuda.simulate()` has made: what it has counted, and what it is to do. */
export function simulatorOf(cuda: Cuda): SimulatedDriver {
  const simulated = SimulatedDriver.of(cuda.driver);
  assert(simulated !== null, "this Cuda has no simulator");
  return simulated;
}
