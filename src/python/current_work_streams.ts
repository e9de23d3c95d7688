/**
 * The streams that our DLPack exchange API tells its consumers to work on, one for each device. JavaScript writes their
 * handles to memory, and machine code reads them there on any thread. All functions here need the interpreter's lock.
 *
 * @module
 */
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import { type CudaDevice, type CudaStream, internals, isCapturing } from "../device/mod.ts";
import { innermost, libcuda } from "../driver/mod.ts";
import { LibraryNotFoundError, NativeArena, openLibrary } from "../ffi/mod.ts";
import { consumerStream, producerWaits } from "../order/mod.ts";

/** How many devices have a work stream. On all others it is the legacy default stream. */
export const mostDevices = 64;

interface Words {
  readonly address: bigint;
  /** Handles by the device's number. */
  readonly handles: BigUint64Array<ArrayBuffer>;
}

let words: Words | undefined;

/** The work streams by their device's number: consumers may work on them although nothing else keeps them alive. */
const current = new Map<number, CudaStream>();

/** The handles are never freed: consumers may keep the exchange API for as long as the process lives. */
function workStreams(): Words {
  if (words === undefined) {
    const { address, bytes } = new NativeArena().bytes(8 * mostDevices);
    words = {
      address,
      handles: new BigUint64Array(bytes.buffer, bytes.byteOffset, mostDevices).fill(CU_STREAM_LEGACY),
    };
  }
  return words;
}

/** Address of the handles, one of 64 bits for each device. */
export function workStreamsAddress(): bigint {
  return workStreams().address;
}

// law python/setWorkStream: python/current_work_streams
/**
 * Makes a stream the work stream of its device, until it is closed or another one is set. It waits for the one before:
 * so what a consumer has made is always ready for the current work stream.
 *
 * Nothing is done for a stream of a simulated device, nor while a stream is captured, because the order would
 * invalidate the capture.
 *
 * @param locked does work while this thread holds the interpreter's lock
 */
export function setWorkStream(stream: CudaStream, locked: (work: () => void) => void): void {
  if (isOfDriver(stream.device)) switchWorkStream(stream, locked);
}

// law python/switchWorkStream: python/current_work_streams, device/dropped
/** As {@linkcode setWorkStream}, on any device; for its test. */
export function switchWorkStream(stream: CudaStream, locked: (work: () => void) => void): void {
  const { device, handle } = stream;
  const { ordinal } = device;
  const { handles } = workStreams();
  const before = handles[ordinal];
  // A foreign stream may be destroyed without notice, and the per-thread default stream is another one on each thread.
  const isOurs = handle > CU_STREAM_PER_THREAD && stream[internals].isHandleStable;
  const following = isOurs ? stream : device.defaultStream;
  const next = isOurs ? handle : CU_STREAM_LEGACY;
  if (before === undefined || before === next || isCapturing(device.driver)) return;
  producerWaits(consumerStream(device, before), following);
  Atomics.store(handles, ordinal, next);
  current.delete(ordinal);
  if (!isOurs) return;
  current.set(ordinal, stream);
  const { successor } = stream[internals];
  stream[internals].beforeClose = () =>
    locked(() => {
      if (handles[ordinal] !== handle) return; // another one was set since
      Atomics.store(handles, ordinal, CU_STREAM_LEGACY);
      current.delete(ordinal);
      if (!isCapturing(device.driver)) producerWaits(successor, device.defaultStream);
    });
}

/** Whether a device belongs to the driver that Python calls: a simulated device has another one. */
function isOfDriver({ driver }: CudaDevice): boolean {
  try {
    return (innermost(driver)) === openLibrary(libcuda).functions;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return false;
    throw error;
  }
}
