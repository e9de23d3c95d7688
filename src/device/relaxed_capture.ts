/**
 * What may be done while another library captures a stream, of whatever kind and on whatever thread: with its thread
 * relaxed, the driver lets a call through that it would otherwise refuse, invalidating the capture. Which calls those
 * are is in `tests/data/driver_answers.json`. Not among them are what concerns all streams of a context
 * (`cuCtxSynchronize`, `cuCtxRecordEvent`), and the legacy default stream while a stream is captured that it would wait
 * for.
 *
 * @module
 */
import { CU_STREAM_CAPTURE_MODE, CU_STREAM_LEGACY, CUresult } from "../../bindings/cuda_types.ts";
import { ffiPort, type HandleArgument, NativeArena } from "../ffi/mod.ts";
import { isCapturing } from "./graph/active_captures.ts";
import type { CudaDevice } from "./device.ts";
import { type CudaDriver, CudaError } from "../driver/mod.ts";

/**
 * Where the driver reads the mode that a thread is to have, and writes the one that it had. Lives as long as the
 * process.
 */
interface Slot {
  readonly word: Int32Array<ArrayBuffer>;
  readonly address: bigint;
  /** The address as the runtime passes it fastest: every allocation and every question passes it twice. */
  readonly argument: HandleArgument;
}

let slot: Slot | undefined;

function makeSlot(): Slot {
  const { address, bytes: { buffer, byteOffset } } = new NativeArena().bytes(4);
  return slot = { word: new Int32Array(buffer, byteOffset, 1), address, argument: ffiPort().handle(address) };
}

/** A mode that need not be put back. */
const unchanged = -1;

// law device/relaxThread: memory/beside_captures, device/graph/active_captures
function relaxThread({ capture }: CudaDriver): number {
  const { word, argument } = slot ?? makeSlot();
  word[0] = CU_STREAM_CAPTURE_MODE.RELAXED;
  const code = capture.cuThreadExchangeStreamCaptureMode(argument);
  const before = word[0];
  return code !== CUresult.CUDA_SUCCESS || before === CU_STREAM_CAPTURE_MODE.RELAXED ? unchanged : before;
}

// law device/relax: memory/beside_captures, device/graph/active_captures
/**
 * Relaxes the calling thread, unless a capture of ours is active: then its own `mode` says what is let through. For
 * calls so frequent that the function which {@linkcode besideCaptures} takes would show.
 *
 * @returns what {@linkcode restore} takes, which must be called next, whatever happens
 */
export function relax(driver: CudaDriver): number {
  return isCapturing(driver) ? unchanged : relaxThread(driver);
}

// law device/restore: memory/beside_captures, device/graph/active_captures
/** Restores the mode that the thread had. */
export function restore({ capture }: CudaDriver, mode: number): void {
  if (mode === unchanged || slot === undefined) return;
  slot.word[0] = mode;
  capture.cuThreadExchangeStreamCaptureMode(slot.argument);
}

/** Makes calls that must not invalidate a capture of another library. While one of ours is active its `mode` counts. */
export function besideCaptures<T>(driver: CudaDriver, calls: () => T): T {
  const before = relax(driver);
  try {
    return calls();
  } finally {
    restore(driver, before);
  }
}

/** Makes calls that concern no stream, and so no capture either, not even one of ours. */
export function besideAllCaptures<T>(driver: CudaDriver, calls: () => T): T {
  const before = relaxThread(driver);
  try {
    return calls();
  } finally {
    restore(driver, before);
  }
}

// law device/isBlockedByCapture: memory/beside_captures, device/graph/active_captures, order/default_home
/**
 * Whether another library captures a stream that the legacy default stream of a device would wait for. Then whatever is
 * done there, and what concerns all streams, is refused and invalidates the capture, and has to wait. This query does
 * not. Captures of streams that ignore the legacy one are not seen: of those the driver says nothing.
 */
export function isBlockedByCapture(device: CudaDevice): boolean {
  if (device.isGone) return false;
  const { capture } = device.driver;
  const ask = () => capture.cuStreamIsCapturing(CU_STREAM_LEGACY, (slot ?? makeSlot()).address);
  return device.withContext(ask) === CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

// law device/isRefusedByCapture: memory/beside_captures, device/graph/active_captures
/** Whether a call was refused because of a capture: it may be tried again after that. */
export function isRefusedByCapture(error: unknown): boolean {
  return error instanceof CudaError && refusals.has(error.code);
}

const refusals: ReadonlySet<number> = new Set([
  CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
  CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
]);
