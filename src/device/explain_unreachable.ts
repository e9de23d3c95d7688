/**
 * Explains errors about memory that a device cannot reach: the driver only reports an invalid argument.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { checkCuda, CudaError, resultName } from "../driver/mod.ts";
import { PointerQuery } from "./pointer_attributes.ts";
import type { CudaStream } from "./stream.ts";

// law device/checkReached: memory/cuda_core_peer_access, copy/far_stream
/**
 * Throws unless a call on a stream has succeeded. If one of its addresses is memory of another device, that is the
 * meaning of an invalid argument, and the error says so.
 *
 * @throws {CudaError}
 */
export function checkReached(stream: CudaStream, call: string, code: number, addresses: readonly bigint[]): void {
  const { device } = stream;
  const { driver } = device;
  if (code !== CUresult.CUDA_ERROR_INVALID_VALUE) return checkCuda(driver, call, code);
  const query = new PointerQuery(driver, device.siblings);
  try {
    for (const address of addresses) {
      const { kind, device: owner } = query.ask(address);
      if (kind !== "device" || owner === null || owner.ordinal === device.ordinal) continue;
      throw new CudaError(
        call,
        code,
        resultName(code),
        `${device}, the stream's device, has no access to memory of ${owner}. Use a ` +
          `stream of ${owner}, or grant access: resource.peerAccessibleBy.add(${device.ordinal})`,
      );
    }
  } finally {
    query.close();
  }
  checkCuda(driver, call, code);
}
