/**
 * Calls that are safe while another library captures a stream, of any kind and on any thread: when the calling thread
 * is relaxed, the driver allows calls that it would otherwise refuse, invalidating the capture.
 * `tests/data/driver_answers.json` lists these calls. They do not include calls that concern all streams of a context
 * (`cuCtxSynchronize`, `cuCtxRecordEvent`), nor the legacy default stream while a stream that it would wait for is
 * captured.
 *
 * @module
 */
import { CU_STREAM_CAPTURE_MODE, CU_STREAM_LEGACY, CUresult } from "../../bindings/cuda_types.ts";
import { ffiPort, type HandleArgument, NativeArena } from "../ffi/mod.ts";
import { isCapturing } from "./graph/active_captures.ts";
import type { CudaDevice } from "./device.ts";
import { type CudaDriver, CudaError } from "../driver/mod.ts";

/** Where the driver reads a thread's new mode and writes its previous one. Lives as long as the process. */
interface Slot {
  readonly word: Int32Array<ArrayBuffer>;
  readonly address: bigint;
  /** The address in the form that the runtime passes fastest: every allocation and every query passes it twice. */
  readonly argument: HandleArgument;
}

let slot: Slot | undefined;

function makeSlot(): Slot {
  const { address, bytes: { buffer, byteOffset } } = new NativeArena().bytes(4);
  return slot = { word: new Int32Array(buffer, byteOffset, 1), address, argument: ffiPort().handle(address) };
}

/** Stands for a mode that need not be restored. */
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
 * Relaxes the calling thread, unless a capture of ours is active: then its own `mode` decides what is allowed. For hot
 * paths where the closure that {@linkcode besideCaptures} takes would be measurable.
 *
 * @returns the argument of {@linkcode restore}, which must be called next, whatever happens
 */
export function relax(driver: CudaDriver): number {
  return isCapturing(driver) ? unchanged : relaxThread(driver);
}

// law device/restore: memory/beside_captures, device/graph/active_captures
/** Restores the thread's previous mode. */
export function restore({ capture }: CudaDriver, mode: number): void {
  if (mode === unchanged || slot === undefined) return;
  slot.word[0] = mode;
  capture.cuThreadExchangeStreamCaptureMode(slot.argument);
}

/**
 * Makes calls that must not invalidate another library's capture. While a capture of ours is active, its `mode`
 * applies.
 */
export function besideCaptures<T>(driver: CudaDriver, calls: () => T): T {
  const before = relax(driver);
  try {
    return calls();
  } finally {
    restore(driver, before);
  }
}

/** Makes calls that concern no stream, and so no capture, not even one of ours. */
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
 * Whether another library captures a stream that the legacy default stream of a device would wait for. Then calls on
 * the legacy stream, and calls that concern all streams, are refused and invalidate the capture, so they have to wait.
 * This query does not. Captures of streams that ignore the legacy one are not detected: the driver does not report
 * them.
 */
export function isBlockedByCapture(device: CudaDevice): boolean {
  if (device.isGone) return false;
  const { capture } = device.driver;
  const ask = () => capture.cuStreamIsCapturing(CU_STREAM_LEGACY, (slot ?? makeSlot()).address);
  return device.withContext(ask) === CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

// law device/isRefusedByCapture: memory/beside_captures, device/graph/active_captures
/** Whether a call was refused because of a capture: it may be retried after the capture. */
export function isRefusedByCapture(error: unknown): boolean {
  return error instanceof CudaError && refusals.has(error.code);
}

const refusals: ReadonlySet<number> = new Set([
  CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
  CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
]);
