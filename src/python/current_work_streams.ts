/**
 * The streams that our DLPack exchange API tells consumers to work on, one per device. JavaScript writes their handles
 * to memory, and machine code reads them on any thread. All functions here need the interpreter's lock.
 *
 * @module
 */
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from "../../bindings/cuda_types.ts";
import { type CudaStream, internals, isCapturing } from "../device/mod.ts";
import { NativeArena } from "../ffi/mod.ts";
import { consumerStream, producerWaits } from "../order/mod.ts";

/** How many devices can have a work stream. All others use the legacy default stream. */
export const maxDevices = 64;

interface Words {
  readonly address: bigint;
  /** Handles, indexed by device ordinal. */
  readonly handles: BigUint64Array<ArrayBuffer>;
}

let words: Words | undefined;

/** The work streams by device ordinal: consumers may use them when nothing else keeps them alive. */
const current = new Map<number, CudaStream>();

/** The handles are never freed: consumers may keep the exchange API for the life of the process. */
function workStreams(): Words {
  if (words === undefined) {
    const { address, bytes } = new NativeArena().bytes(8 * maxDevices);
    words = {
      address,
      handles: new BigUint64Array(bytes.buffer, bytes.byteOffset, maxDevices).fill(CU_STREAM_LEGACY),
    };
  }
  return words;
}

/** Address of the handles, one 64-bit word per device. */
export function workStreamsAddress(): bigint {
  return workStreams().address;
}

// law python/setWorkStream: python/current_work_streams
/**
 * Makes a stream the work stream of its device, until it is closed or another one is set. It waits for the previous
 * work stream, so consumers' results are always ready on the current one.
 *
 * Does nothing for a stream of a simulated device, nor during a stream capture, which the ordering would invalidate.
 *
 * @param locked runs work while this thread holds the interpreter's lock
 */
export function setWorkStream(stream: CudaStream, locked: (work: () => void) => void): void {
  if (!stream.device.isSimulated) switchWorkStream(stream, locked);
}

// law python/switchWorkStream: python/current_work_streams, device/dropped
/** As {@linkcode setWorkStream}, on any device; for tests. */
export function switchWorkStream(stream: CudaStream, locked: (work: () => void) => void): void {
  const { device, handle } = stream;
  const { ordinal } = device;
  const { handles } = workStreams();
  const before = handles[ordinal];
  // A foreign stream may be destroyed without notice, and the per-thread default stream differs on each thread.
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
      if (handles[ordinal] !== handle) return; // another stream has been set since
      Atomics.store(handles, ordinal, CU_STREAM_LEGACY);
      current.delete(ordinal);
      if (!isCapturing(device.driver)) producerWaits(successor, device.defaultStream);
    });
}
