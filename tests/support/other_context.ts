/**
 * A context that another library has made on a device, beside the primary one.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { CU_STREAM } from "../../bindings/cuda_types.ts";
import { type CudaDevice, CudaStream } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";

/** A stream of a context that is not the device's primary one, and that is destroyed with the result. */
export function otherContext(device: CudaDevice): Disposable & { readonly stream: CudaStream } {
  const { context, stream } = device.driver;
  using arena = new NativeArena();
  const out = arena.out("ptr");
  assertEquals(context.cuCtxCreate_v2(out.$address, 0, device.ordinal), 0);
  const own = out.value;
  assertEquals(stream.cuStreamCreate(out.$address, CU_STREAM.NON_BLOCKING), 0);
  const handle = out.value;
  assertEquals(context.cuCtxPopCurrent_v2(out.$address), 0);
  return {
    stream: CudaStream.fromHandle(device, handle),
    [Symbol.dispose]: () => assertEquals(context.cuCtxDestroy_v2(own), 0),
  };
}
