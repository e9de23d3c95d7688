/**
 * Memory that a stream has not yet written.
 *
 * @module
 */
import { Cuda, type MemoryBuffer, PinnedMemoryResource } from "../../mod.ts";

/** Page-locked memory whose stream is not done with it until `goOn` is called. */
export function unwritten(bytes: number): { readonly buffer: MemoryBuffer; readonly goOn: () => void } {
  const device = Cuda.simulate().device(0);
  const stream = device.createStream();
  const buffer = new PinnedMemoryResource(device).allocate(bytes, { stream });
  const { promise, resolve } = Promise.withResolvers<void>();
  let isReady = false;
  Object.defineProperties(stream, { isReady: { get: () => isReady }, ready: { value: () => promise } });
  const goOn = () => {
    isReady = true;
    resolve();
  };
  return { buffer, goOn };
}
