/**
 * The root: `Cuda` opens a driver or simulates one, wraps it in a checker on request, and gives its devices their
 * memory.
 *
 * It is the only place that knows driver, simulator, checker, devices and memory together; none of these knows it.
 * Several roots can coexist, each with its own devices.
 *
 * @module
 */
export { type CheckedOptions, Cuda, type CudaProbe, type DeviceOptions } from "./cuda.ts";
