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

/** Says why a kernel on a simulated driver has failed; undefined if none has, or the driver is a real one. */
export type FaultOf = (driver: CudaDriver) => unknown;

let provided: Simulator | undefined;
let explain: FaultOf = () => undefined;

/** Plugs the simulator in. */
export function provideSimulator(simulator: Simulator, faultOf: FaultOf): void {
  provided = simulator;
  explain = faultOf;
}

/** Why a kernel has failed, if the driver is a simulated one. */
export function faultOf(driver: CudaDriver): unknown {
  return explain(driver);
}

/** The simulator. */
export function simulator(): Simulator {
  if (provided === undefined) throw new TypeError("Cannot simulate CUDA: import the package, not one file of it");
  return provided;
}
