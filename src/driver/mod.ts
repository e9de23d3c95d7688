/**
 * The CUDA driver as a typed value: one function for each of libcuda's, by group.
 *
 * Three implementations have this type: the real library (`libcuda` says how it is found), the simulator and the
 * checked driver. So everything above sees one C ABI, and a test can put anything in front of it. The room knows what C
 * looks like and how to call it, and no class above it. `checkCuda` turns any code but success into a `CudaError`, in
 * the driver's words. Through its traits a driver reveals more than a C library can: what caused an error, and what
 * observes its calls.
 *
 * @module
 */
export {
  checkCuda,
  checkRelease,
  type CudaDriver,
  CudaError,
  cudaError,
  decodeVersion,
  type DriverGroups,
  isSticky,
  isStickyCode,
  libcuda,
  NEEDS_CONTEXT,
  resultName,
} from "./driver.ts";
export { libcudart, libnvrtc } from "./libraries.ts";
export {
  type DriverObserver,
  innermost,
  isHostObserved,
  isSimulated,
  noteHostAccess,
  noteNewHostMemory,
  observeHost,
  observerOf,
} from "./observer.ts";
export {
  cause,
  type DriverTraits,
  type KernelAccess,
  type KernelObserver,
  observeKernels,
  observer,
} from "./traits.ts";
