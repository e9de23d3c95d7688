/**
 * Copies rows of bytes with pitches, by the driver.
 *
 * @module
 */
import { CU_MEMORYTYPE, CUDA_MEMCPY3D_PEER } from "../../bindings/cuda_types.ts";
import { checkReached, type CudaDevice, type CudaStream, makeOrderExplicit } from "../device/mod.ts";
import { checkCuda } from "../driver/mod.ts";
import { NativeArena } from "../ffi/mod.ts";
import type { Pitched } from "./device_plan.ts";

/** The start of a box. */
export interface Corner {
  readonly isHost: boolean;
  readonly at: bigint;
}

// law copy/copyPitched: gpu/implied_order
/**
 * Enqueues the copy of a box. Boxes of one slice are rectangles: the driver's three-dimensional copy does both.
 *
 * @param peers the two devices, if the copy is between two
 */
export function copyPitched(
  box: Pitched,
  source: Corner,
  destination: Corner,
  stream: CudaStream,
  peers: { readonly from: CudaDevice; readonly to: CudaDevice } | null,
): void {
  const { device } = stream;
  const { driver } = device;
  using arena = new NativeArena();
  // A copy on one device reads the same struct up to the contexts, and requires NULL in their place.
  const struct = arena.struct(CUDA_MEMCPY3D_PEER);
  struct.srcMemoryType = source.isHost ? CU_MEMORYTYPE.HOST : CU_MEMORYTYPE.DEVICE;
  struct[source.isHost ? "srcHost" : "srcDevice"] = source.at;
  struct.srcPitch = box.fromPitch;
  struct.srcHeight = box.fromHeight;
  struct.dstMemoryType = destination.isHost ? CU_MEMORYTYPE.HOST : CU_MEMORYTYPE.DEVICE;
  struct[destination.isHost ? "dstHost" : "dstDevice"] = destination.at;
  struct.dstPitch = box.toPitch;
  struct.dstHeight = box.toHeight;
  struct.WidthInBytes = box.width;
  struct.Height = box.height;
  struct.Depth = box.depth;
  if (source.isHost && !destination.isHost) makeOrderExplicit(stream, box.width * box.height * box.depth);
  const { copyPitched: calls } = driver;
  if (peers === null) {
    const enqueue = () => calls.cuMemcpy3DAsync_v2(struct.$address, stream.handleFor("use"));
    return checkReached(stream, "cuMemcpy3DAsync_v2", device.withContext(enqueue), [source.at, destination.at]);
  }
  struct.srcContext = peers.from.context;
  struct.dstContext = peers.to.context;
  const enqueue = () => calls.cuMemcpy3DPeerAsync(struct.$address, stream.handleFor("use"));
  checkCuda(driver, "cuMemcpy3DPeerAsync", device.withContext(enqueue));
}
