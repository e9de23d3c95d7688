/**
 * Reads device memory into JavaScript's own memory, without blocking the event loop for enqueued work.
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
 * Copies the elements, as of this point in the stream's order, to host memory; settles when the copy is complete.
 *
 * Goes through pinned memory or, if the copy is staged and there is enough memory, through a copy on the device: work
 * enqueued while this waits must not change the data read.
 *
 * @param layout the result's layout; dense
 * @param staging how the copy is staged, or null
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
  // On a stream without work: the caller's stream may have more work by now.
  copyStaged(runTo(bytes, copy.buffer.ptr), helperStream(stream.device), staging);
}

/** The run that reads `bytes.byteLength` contiguous bytes into new memory. */
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
