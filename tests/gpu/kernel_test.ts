/** Kernels from a string, on a real device. */
import { assert, assertAlmostEquals, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, CudaError, DeviceMemoryResource, HostMemoryResource, type KernelArg } from "../../mod.ts";
import { missingCudart } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

const missing = missingCudart();
const source = `
extern "C" __global__ void saxpy(float *y, const float *x, float a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] += a * x[i];
}
extern "C" __global__ void widths(long long *out, signed char c, unsigned short s, long long l, double d, bool b) {
  out[0] = c; out[1] = s; out[2] = l; out[3] = (long long)(d * 4); out[4] = b;
}
extern "C" __global__ void reversed(int *data) {
  extern __shared__ int block[];
  block[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = block[blockDim.x - 1 - threadIdx.x];
}`;

test(...needs(missing, "a kernel gets its arguments by type, and the device's order"), () => {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using stream = device.createStream();
  using program = device.compile(source);
  const memory = new DeviceMemoryResource(device);
  const n = 100_000;
  using host = new HostMemoryResource().allocate(4 * n);
  const numbers = new Float32Array(host.bytes().buffer);
  using x = memory.allocate(4 * n, { stream });
  using y = memory.allocate(4 * n, { stream });
  numbers.forEach((_, i) => numbers[i] = i);
  x.copyFrom(host, { stream });
  y.fill(0, { stream });
  program.kernel("saxpy").launch(stream, [64], 256, [y, x, ["float32", 0.5], ["int32", n]]);
  y.copyTo(host, { stream });
  stream.synchronize();
  for (const i of [0, 1, 12345, n - 1]) assertAlmostEquals(numbers[i] ?? NaN, i / 2);

  using out = memory.allocate(40, { stream });
  using read = new HostMemoryResource().allocate(40);
  const args: KernelArg[] = [out, ["int8", -5], ["uint16", 65535], -(2n ** 40n), ["float64", 2.25], ["bool", true]];
  program.kernel("widths").launch(stream, 1, 1, args);
  out.copyTo(read, { stream });
  stream.synchronize();
  assertEquals(Array.from(new BigInt64Array(read.bytes().buffer)), [-5n, 65535n, -(2n ** 40n), 9n, 1n]);

  using data = memory.allocate(4 * 128, { stream });
  using order = new HostMemoryResource().allocate(4 * 128);
  const values = new Int32Array(order.bytes().buffer);
  values.forEach((_, i) => values[i] = i);
  data.copyFrom(order, { stream });
  program.kernel("reversed").launch(stream, 1, 128, [data], { sharedBytes: 4 * 128 });
  data.copyTo(order, { stream });
  stream.synchronize();
  assertEquals([values[0], values[127]], [127, 0]);
  const { blockSize, minGridSize } = program.kernel("saxpy").occupancy();
  assert(blockSize >= 32 && minGridSize >= 1);
  assert(program.kernel("saxpy").attribute("MAX_THREADS_PER_BLOCK") >= 256);
});

test(...needs(missing, "an invalid launch is refused before the driver is asked, or with its error"), () => {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using stream = device.createStream();
  using program = device.compile(source);
  const kernel = program.kernel("reversed");
  assertThrows(
    () => kernel.launch(stream, 0, 1, [0n]),
    RangeError,
    "grid of 0: expected one to three positive integers",
  );
  assertThrows(
    () => kernel.launch(stream, 1, [1.5], [0n]),
    RangeError,
    "block of (1.5,): expected one to three positive integers",
  );
  assertThrows(() => kernel.launch(stream, 1, 1, [7 as unknown as bigint]), TypeError, 'such as ["float32", 1]');
  assertThrows(() => kernel.launch(stream, 1, 1, [["int32", 2 ** 31]]), RangeError);
  assertThrows(() => kernel.launch(stream, 1, 4096, [0n]), CudaError, "CUDA_ERROR_INVALID_VALUE");
  assertThrows(() => program.kernel("nothing"), CudaError, "CUDA_ERROR_NOT_FOUND");
});
