/** The CUDA runtime and the driver share the same streams, events and memory. */
import { assertEquals, assertStringIncludes } from "@std/assert";
import { test } from "node:test";
import { Cuda, CudaStream, DeviceMemoryResource, HostMemoryResource, MemoryBuffer } from "../../mod.ts";
import { libcudart } from "../../src/driver/libraries.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { readCString } from "../../src/ffi/c_string.ts";
import { missingCudart } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

const missing = missingCudart();
const hostToDevice = 1; // cudaMemcpyHostToDevice

test(...needs(missing, "libcudart takes the driver's streams, events and memory"), () => {
  using cuda = Cuda.open();
  const { functions: runtime } = openLibrary(libcudart);
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(4096, { stream });
  using up = new HostMemoryResource().allocate(4096);
  using down = new HostMemoryResource().allocate(4096);
  up.bytes().forEach((_, i, bytes) => bytes[i] = i * 7);
  assertEquals(runtime.device.cudaSetDevice(0), 0);
  assertEquals(runtime.copy.cudaMemcpyAsync(buffer.ptr, up.ptr, 4096n, hostToDevice, stream.handle), 0);
  using event = device.createEvent();
  assertEquals(runtime.event.cudaEventRecord(event.handle, stream.handle), 0);
  assertEquals(runtime.stream.cudaStreamWaitEvent(stream.handle, event.handle, 0), 0);
  assertEquals(runtime.event.cudaEventSynchronize(event.handle), 0);
  assertEquals(event.isDone, true);
  buffer.copyTo(down, { stream });
  assertEquals(runtime.stream.cudaStreamSynchronize(stream.handle), 0);
  assertEquals(down.bytes(), up.bytes());
});

test(...needs(missing, "the driver takes libcudart's streams, events and memory"), () => {
  using cuda = Cuda.open();
  using arena = new NativeArena();
  const { functions: runtime } = openLibrary(libcudart);
  const device = cuda.device(0);
  const out = arena.out("ptr");
  assertEquals(runtime.device.cudaSetDevice(0), 0);
  assertEquals(runtime.stream.cudaStreamCreate(out.$address), 0);
  const stream = CudaStream.fromHandle(device, out.value);
  assertEquals(runtime.memory.cudaMalloc(out.$address, 4096n), 0);
  const buffer = MemoryBuffer.fromPointer(out.value, 4096, { device });
  assertEquals(runtime.event.cudaEventCreate(out.$address), 0);
  const event = out.value;

  using up = new HostMemoryResource().allocate(4096);
  using down = new HostMemoryResource().allocate(4096);
  up.bytes().fill(0x5c);
  buffer.copyFrom(up, { stream });
  buffer.copyTo(down, { stream });
  const { driver } = cuda;
  assertEquals(driver.event.cuEventRecord(event, stream.handle), 0);
  assertEquals(driver.event.cuEventSynchronize(event), 0);
  assertEquals(stream.isDone, true);
  assertEquals(down.bytes(), up.bytes());
  assertEquals(driver.event.cuEventDestroy_v2(event), 0);
  assertEquals(device.withContext(() => driver.memory.cuMemFree_v2(buffer.ptr)), 0);
  assertEquals(device.withContext(() => driver.stream.cuStreamDestroy_v2(stream.handle)), 0);
});

test(...needs(missing, "libcudart puts its errors into words"), () => {
  const { opening } = openLibrary(libcudart).functions;
  assertEquals(readCString(opening.cudaGetErrorName(2)), "cudaErrorMemoryAllocation");
  assertStringIncludes(readCString(opening.cudaGetErrorString(2)), "out of memory");
});
