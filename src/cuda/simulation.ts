/**
 * How `Cuda.simulate` reaches the simulator, which is built on top of the driver's type: the room `sim` plugs itself in
 * when it is loaded, which every public module does. So no import points upwards.
 *
 * @module
 */
import type { OptionNames } from "../layout/options.ts";
import type { SimulateOptions } from "../sim/options.ts";
import type { CudaDriver } from "../driver/driver.ts";

/** The names of {@linkcode SimulateOptions}. */
export const simulateOptionNames: OptionNames<SimulateOptions> = {
  devices: true,
  seed: true,
  schedule: true,
  memory: true,
  poolsSupported: true,
  driverVersion: true,
  canAccessPeer: true,
  loadPtx: true,
  freesWait: true,
  maxInstructions: true,
  print: true,
};

/** Makes a simulated driver. */
export type Simulator = (options: SimulateOptions) => CudaDriver;

/** Says what is behind an error of a simulated driver: undefined if that is not known, or the driver is a real one. */
export type CauseOf = (driver: CudaDriver, code: number) => unknown;

let provided: Simulator | undefined;
let explain: CauseOf = () => undefined;

/** Plugs the simulator in. */
export function provideSimulator(simulator: Simulator, causeOf: CauseOf): void {
  provided = simulator;
  explain = causeOf;
}

/** What is behind an error, if the driver is a simulated one. */
export function causeOf(driver: CudaDriver, code: number): unknown {
  return explain(driver, code);
}

/** The simulator. */
export function simulator(): Simulator {
  if (provided === undefined) throw new TypeError("Cannot simulate CUDA: import the package, not one file of it");
  return provided;
}
