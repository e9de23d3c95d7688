/**
 * Driver initialisation, and error texts.
 *
 * @module
 */
import { CUresult } from "../../../bindings/cuda_types.ts";
import { constantName, NativeArena } from "../../ffi/mod.ts";
import { type CallTable, refuse } from "../call.ts";
import type { Simulator } from "../simulator.ts";
import { writeInt, writeWord } from "../out_parameters.ts";

/** The calls of the group. */
export function openingCalls(simulator: Simulator): CallTable<"opening"> {
  return {
    cuInit(flags) {
      if (flags !== 0) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      if (simulator.devices.length === 0) throw refuse(CUresult.CUDA_ERROR_NO_DEVICE);
      simulator.initialized = true;
    },
    cuDriverGetVersion: (out) => writeInt(out, simulator.options.driverVersion),
    cuDeviceGetCount: (out) => writeInt(out, simulator.devices.length),
    cuDeviceGet: (out, ordinal) => writeInt(out, simulator.device(ordinal).ordinal),
    cuGetErrorName: (code, out) => writeText(out, constantName(CUresult, code)),
    cuGetErrorString: (code, out) => writeText(out, explanations.get(code)),
  };
}

/** The driver's texts for the codes that the simulator returns, or that tests inject. */
const explanations: ReadonlyMap<number, string> = new Map([
  [CUresult.CUDA_SUCCESS, "no error"],
  [CUresult.CUDA_ERROR_INVALID_VALUE, "invalid argument"],
  [CUresult.CUDA_ERROR_OUT_OF_MEMORY, "out of memory"],
  [CUresult.CUDA_ERROR_NOT_INITIALIZED, "initialization error"],
  [CUresult.CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"],
  [CUresult.CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"],
  [CUresult.CUDA_ERROR_INVALID_CONTEXT, "invalid device context"],
  [CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"],
  [CUresult.CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"],
  [CUresult.CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed"],
  [CUresult.CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"],
  [CUresult.CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"],
  [CUresult.CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"],
  [CUresult.CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"],
  [CUresult.CUDA_ERROR_NOT_FOUND, "named symbol not found"],
  [CUresult.CUDA_ERROR_NOT_READY, "device not ready"],
  [CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"],
  [CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"],
  [CUresult.CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"],
  [CUresult.CUDA_ERROR_ASSERT, "device-side assert triggered"],
  [CUresult.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"],
  [CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"],
  [CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"],
  [
    CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
    "part or all of the requested memory range is already mapped",
  ],
  [CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"],
  [CUresult.CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"],
  [CUresult.CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"],
  [CUresult.CUDA_ERROR_NOT_PERMITTED, "operation not permitted"],
  [CUresult.CUDA_ERROR_NOT_SUPPORTED, "operation not supported"],
  [CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"],
  [CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"],
  [CUresult.CUDA_ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"],
  [CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"],
  [CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"],
  [CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"],
  [
    CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
    "operation would make the legacy stream depend on a capturing blocking stream",
  ],
  [CUresult.CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"],
  [
    CUresult.CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
    "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update",
  ],
  [CUresult.CUDA_ERROR_UNKNOWN, "unknown error"],
]);

/** The driver's strings live as long as the process; so do these. */
const texts = new Map<string, bigint>();

function writeText(out: bigint, text: string | undefined): void {
  if (text === undefined) {
    writeWord(out, 0n);
    throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  }
  writeWord(out, texts.getOrInsertComputed(text, () => new NativeArena().cString(text)));
}
