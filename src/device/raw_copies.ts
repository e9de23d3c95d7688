/**
 * Copies and fills of plain addresses, enqueued on a stream. Offsets are part of the addresses; ownership of the
 * memory, and order, are up to the rooms above.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { checkCuda } from "../driver/mod.ts";
import type { CudaDevice } from "./device.ts";
import { checkReached } from "./explain_unreachable.ts";
import { makeOrderExplicit } from "./implied_order.ts";
import type { CudaStream } from "./stream.ts";

/** The direction of a copy, as in the names of the driver's functions. */
export type CopyDirection = "HtoH" | "HtoD" | "DtoH" | "DtoD";

/** The copy functions. Composing their names at run time would take longer than the copy. */
const copyCalls = {
  HtoH: "cuMemcpyAsync", // between pinned buffers: the driver detects the kind of each address
  HtoD: "cuMemcpyHtoDAsync_v2",
  DtoH: "cuMemcpyDtoHAsync_v2",
  DtoD: "cuMemcpyDtoDAsync_v2",
} as const;

/** The fill functions, by the bytes of a value. */
const fillCalls = { 1: "cuMemsetD8Async", 2: "cuMemsetD16Async", 4: "cuMemsetD32Async" } as const;

// law device/enqueueCopy: gpu/implied_order, memory/memory_programs
/** Enqueues a copy of `bytes` bytes, more than 0. */
export function enqueueCopy(
  stream: CudaStream,
  destination: bigint,
  source: bigint,
  bytes: number,
  direction: CopyDirection,
): void {
  if (direction === "HtoD") makeOrderExplicit(stream, bytes);
  const { device } = stream;
  const { copy } = device.driver;
  const call = copyCalls[direction];
  const code = device.withContext(() => copy[call](destination, source, BigInt(bytes), stream.handleFor("use")));
  if (code !== CUresult.CUDA_SUCCESS) checkReached(stream, call, code, [destination, source]);
}

/**
 * Enqueues a copy from one device's memory to another's, whether or not they have access to each other's memory.
 *
 * @param stream a stream of either device, or of a third one
 */
export function enqueuePeerCopy(
  stream: CudaStream,
  destination: bigint,
  to: CudaDevice,
  source: bigint,
  from: CudaDevice,
  bytes: number,
): void {
  const { device } = stream;
  const { cuMemcpyPeerAsync } = device.driver.copy;
  device.withContext(() => {
    const code = cuMemcpyPeerAsync(
      destination,
      to.context,
      source,
      from.context,
      BigInt(bytes),
      stream.handleFor("use"),
    );
    checkCuda(device.driver, "cuMemcpyPeerAsync", code);
  });
}

/** Enqueues a fill of `bytes` bytes, a multiple of `width`, with a value of `width` bytes. */
export function enqueueFill(
  stream: CudaStream,
  destination: bigint,
  value: number,
  width: 1 | 2 | 4,
  bytes: number,
): void {
  const { fill } = stream.device.driver;
  const call = fillCalls[width];
  const code = stream.enqueue(() => fill[call](destination, value, BigInt(bytes / width), stream.handleFor("use")));
  if (code !== CUresult.CUDA_SUCCESS) checkReached(stream, call, code, [destination]);
}
