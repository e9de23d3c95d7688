/**
 * Memory that a stream has not yet written.
 *
 * @module
 */
import { Cuda, type MemoryBuffer, PinnedMemoryResource } from "../../mod.ts";

/** Page-locked memory whose stream is not done with it until `finishWriting` is called. */
export function unwritten(bytes: number): { readonly buffer: MemoryBuffer; readonly finishWriting: () => void } {
  const device = Cuda.simulate().device(0);
  const stream = device.createStream();
  const buffer = new PinnedMemoryResource(device).allocate(bytes, { stream });
  const { promise, resolve } = Promise.withResolvers<void>();
  let isReady = false;
  Object.defineProperties(stream, { isReady: { get: () => isReady }, ready: { value: () => promise } });
  const finishWriting = () => {
    isReady = true;
    resolve();
  };
  return { buffer, finishWriting };
}
