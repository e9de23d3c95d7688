/**
 * The lines that protect a user, each with its replacement and the tests that must fail then. Data for
 * `tools/mutate.ts`; `mutations_test.ts` checks that every entry still applies.
 *
 * A mutant that no test can distinguish from the original is not listed: such a line is deleted, not protected.
 *
 * @module
 */
import { arrowMutations } from "./mutations/arrow.ts";
import { cdataMutations } from "./mutations/cdata.ts";
import { checkerMutations } from "./mutations/checker.ts";
import { copyMutations } from "./mutations/copy.ts";
import { cudaMutations } from "./mutations/cuda.ts";
import { deviceMutations } from "./mutations/device.ts";
import { deviceGraphMutations } from "./mutations/device_graph.ts";
import { deviceKernelMutations } from "./mutations/device_kernel.ts";
import { dlpackMutations } from "./mutations/dlpack.ts";
import { driverMutations } from "./mutations/driver.ts";
import { ffiMutations } from "./mutations/ffi.ts";
import { filesMutations } from "./mutations/files.ts";
import { layoutMutations } from "./mutations/layout.ts";
import { memoryMutations } from "./mutations/memory.ts";
import { memoryResourcesMutations } from "./mutations/memory_resources.ts";
import { memorySharingMutations } from "./mutations/memory_sharing.ts";
import type { Mutation } from "./mutations/mutation.ts";
import { nativeMutations } from "./mutations/native.ts";
import { orderMutations } from "./mutations/order.ts";
import { ptxMutations } from "./mutations/ptx.ts";
import { pythonMutations } from "./mutations/python.ts";
import { pythonGuestMutations } from "./mutations/python_guest.ts";
import { pythonJavascriptMutations } from "./mutations/python_javascript.ts";
import { simMutations } from "./mutations/sim.ts";
import { ucxMutations } from "./mutations/ucx.ts";
import { unixMutations } from "./mutations/unix.ts";
import { viewMutations } from "./mutations/view.ts";
import { vortexMutations } from "./mutations/vortex.ts";
import { vortexFileMutations } from "./mutations/vortex_file.ts";
import { vortexDeviceMutations } from "./mutations/vortex_device.ts";
import { vortexNumericMutations } from "./mutations/vortex_numeric.ts";
import { vortexStringMutations } from "./mutations/vortex_strings.ts";
import { wasmMutations } from "./mutations/wasm.ts";

/** All mutations, room by room. */
export const mutations: readonly Mutation[] = [
  ...ffiMutations,
  ...nativeMutations,
  ...unixMutations,
  ...driverMutations,
  ...ptxMutations,
  ...simMutations,
  ...checkerMutations,
  ...layoutMutations,
  ...filesMutations,
  ...deviceMutations,
  ...deviceGraphMutations,
  ...deviceKernelMutations,
  ...orderMutations,
  ...memoryMutations,
  ...memoryResourcesMutations,
  ...memorySharingMutations,
  ...copyMutations,
  ...dlpackMutations,
  ...cdataMutations,
  ...viewMutations,
  ...arrowMutations,
  ...pythonMutations,
  ...pythonGuestMutations,
  ...pythonJavascriptMutations,
  ...cudaMutations,
  ...ucxMutations,
  ...wasmMutations,
  ...vortexMutations,
  ...vortexFileMutations,
  ...vortexNumericMutations,
  ...vortexDeviceMutations,
  ...vortexStringMutations,
];
