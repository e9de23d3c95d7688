/**
 * How `Cuda.simulate` reaches the simulator, which is built on top of the driver's type: the room `sim` plugs itself in
 * when it is loaded, which every public module does. So no import points upwards.
 *
 * @module
 */
import type { SimulateOptions } from "../sim/options.ts";
import type { CudaDriver } from "./driver.ts";

/** Makes a simulated driver. */
export type Simulator = (options: SimulateOptions) => CudaDriver;

let provided: Simulator | undefined;

/** Plugs the simulator in. */
export function provideSimulator(simulator: Simulator): void {
  provided = simulator;
}

/** The simulator. */
export function simulator(): Simulator {
  if (provided === undefined) throw new TypeError("Cannot simulate CUDA: import the package, not one file of it");
  return provided;
}
