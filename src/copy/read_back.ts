/**
 * Reading memory of a device into memory of JavaScript's own, without holding up the event loop for what is enqueued.
 *
 * @module
 */
import { CUresult } from "../../bindings/cuda_types.ts";
import { CudaError } from "../driver/mod.ts";
import type { CudaStream } from "../device/mod.ts";
import { ffiPort } from "../ffi/mod.ts";
import type { StridedLayout } from "../layout/mod.ts";
import { withPinned } from "./pinned_cache.ts";
import { copyStaged, type Run, type StagingPlan } from "../memory/mod.ts";
import { type CopyOperand, helperStream, temporary, type TemporaryOperand } from "./copy_operand.ts";
import { copyOnDevice } from "./device_copy.ts";

// law copy/readBack: copy/read_back, view/strided_memory_view
/**
 * Copies the elements, as they are in the order of the stream now, to host memory; settles when they are there.
 *
 * By way of pinned memory, or if the copy is to be staged of a copy on the device, as far as there is memory for one:
 * what is enqueued while this waits must not change what is read.
 *
 * @param layout in which they are to lie; dense
 * @param staging how so much memory is staged, if it is
 */
export async function readBack(
  source: CopyOperand,
  bytes: Uint8Array<ArrayBuffer>,
  layout: StridedLayout,
  stream: CudaStream,
  staging: StagingPlan | null,
): Promise<void> {
  const snapshot = staging === null ? null : snapshotOf(source, layout, stream);
  if (staging === null || snapshot === null) return await readPinned(source, bytes, layout, stream);
  using copy = snapshot;
  await stream.completed();
  // On a stream that nothing is enqueued on: the caller's may have got more to do meanwhile.
  copyStaged(runTo(bytes, copy.buffer.ptr), helperStream(stream.device), staging);
}

/** The run of bytes that reading so much memory in one piece into new memory is. */
export function runTo({ buffer, byteOffset, byteLength }: Uint8Array<ArrayBuffer>, from: bigint): Run {
  const to = ffiPort().addressOf(buffer) + BigInt(byteOffset);
  return { to, from, bytes: byteLength, direction: "DtoH", isPageable: true, isNew: true, peers: null };
}

// law copy/snapshotOf: copy/read_back, view/strided_memory_view
function snapshotOf(source: CopyOperand, layout: StridedLayout, stream: CudaStream): TemporaryOperand | null {
  let copy: TemporaryOperand | undefined;
  try {
    copy = temporary(layout, stream);
    copyOnDevice(source, copy, stream);
    return copy;
  } catch (error) {
    copy?.[Symbol.dispose]();
    if (error instanceof CudaError && error.code === CUresult.CUDA_ERROR_OUT_OF_MEMORY) return null;
    throw error;
  }
}

// law copy/readPinned: copy/read_back, view/strided_memory_view
async function readPinned(
  source: CopyOperand,
  bytes: Uint8Array<ArrayBuffer>,
  layout: StridedLayout,
  stream: CudaStream,
): Promise<void> {
  await withPinned(stream, bytes.length, async (buffer) => {
    copyOnDevice(source, { buffer, offset: 0, layout }, stream);
    await stream.completed();
    bytes.set(buffer.bytes().subarray(0, bytes.length));
  });
}
