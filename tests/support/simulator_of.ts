/**
 * The simulator behind a Cuda.
 *
 * @module
 */
import { assert } from "@std/assert";
import type { Cuda } from "../../mod.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";

/** The simulated driver of a Cuda made by `Cuda.simulate()`: its counters and its controls. */
export function simulatorOf(cuda: Cuda): SimulatedDriver {
  const simulated = SimulatedDriver.of(cuda.driver);
  assert(simulated !== null, "this Cuda has no simulator");
  return simulated;
}
