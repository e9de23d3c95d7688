/**
 * Whatever context a foreign library has made current on this thread, work goes to its stream's device, and the foreign
 * context is current afterwards.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, type CudaStream, DeviceMemoryResource, PinnedMemoryResource } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

const missing = missingGpus();
const source = 'extern "C" __global__ void add(int *x, int by) { x[threadIdx.x] += by; }';

/** Work of every kind on a stream: the result is right only if all of it ran, in order. */
function work(cuda: Cuda, stream: CudaStream): number[] {
  const device = cuda.device(0);
  using other = device.createStream();
  const pool = new DeviceMemoryResource(device);
  using program = device.compile(source);
  using host = new PinnedMemoryResource(device).allocate(16);
  using memory = pool.allocate(16, { stream });
  memory.fill(7, { stream, width: 4 });
  program.kernel("add").launch(stream, 1, 4, [memory, ["int32", 35]]);
  other.wait(stream);
  using copy = pool.allocate(16, { stream: other });
  copy.copyFrom(memory, { stream: other });
  program.kernel("add").launch(other, 1, 4, [copy, ["int32", 100]]);
  stream.wait(other);
  host.copyFrom(copy, { stream });
  stream.synchronize();
  assertEquals(stream.isDone, true);
  return Array.from(new Int32Array(host.bytes().slice().buffer));
}

test(...needs(missing, "work goes where its stream says, whatever context is current, and leaves it current"), () => {
  using cuda = Cuda.open();
  using arena = new NativeArena();
  const current = arena.out("ptr");
  const { cuCtxGetCurrent, cuCtxSetCurrent } = cuda.driver.context;
  const device = cuda.device(0);
  using stream = device.createStream();
  for (const context of [0n, ...cuda.devices.map(({ context }) => context)]) {
    for (const one of [stream, device.defaultStream]) {
      cuCtxSetCurrent(context);
      assertEquals(work(cuda, one), [142, 142, 142, 142]);
      cuCtxGetCurrent(current.$address);
      assertEquals(current.value, context);
    }
  }
  cuCtxSetCurrent(0n);
});
