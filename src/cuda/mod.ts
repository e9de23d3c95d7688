/**
 * The root: `Cuda` opens a driver or simulates one, has it checked if that is wanted, and gives its devices their
 * memory.
 *
 * It is the one place that knows driver, simulator, checker, devices and memory together; none of these knows it.
 * Several roots live side by side, each with devices of its own.
 *
 * @module
 */
export type { CheckedOptions } from "./check_options.ts";
export { Cuda, type CudaProbe, type DeviceOptions } from "./cuda.ts";
