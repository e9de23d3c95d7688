/** The checker over a real driver: errors are reported, correct programs are not. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import type { CausalityReport } from "../../src/checker/mod.ts";
import { Cuda, type CudaStream, DeviceMemoryResource, PinnedMemoryResource } from "../../mod.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";

/** The reports for a producer, a consumer on another stream, and the frees of both. */
function reportsOf(order: (producer: CudaStream, consumer: CudaStream) => void): readonly CausalityReport[] {
  const cuda = Cuda.open({ check: { onReport: () => {} } });
  const device = cuda.device(0);
  {
    using producer = device.createStream();
    using consumer = device.createStream();
    using resource = new DeviceMemoryResource(device, {});
    using data = resource.allocate(1 << 20, { stream: producer });
    using copy = resource.allocate(1 << 20, { stream: consumer });
    using host = new PinnedMemoryResource(device).allocate(1 << 20);
    data.fill(7, { stream: producer });
    order(producer, consumer);
    copy.copyFrom(data, { stream: consumer });
    copy.copyTo(host, { stream: consumer });
    consumer.synchronize();
    producer.wait(consumer);
  }
  cuda.close();
  return cuda.reports;
}

test(...needs(missingGpus(), "a consumer that waits for its producer is not reported on a GPU"), () => {
  const reports = reportsOf((producer, consumer) => consumer.wait(producer));
  assertEquals(reports.map(({ message }) => message), []);
});

test(...needs(missingGpus(), "a consumer that does not wait for its producer is reported on a GPU"), () => {
  const reports = reportsOf(() => {});
  assertEquals(reports.map(({ kind }) => kind), ["race"], reports.map(({ message }) => message).join("\n\n"));
  const [{ first, second } = { first: null, second: null }] = reports;
  assertEquals([first?.call, second?.call], ["cuMemsetD8Async", "cuMemcpyDtoDAsync_v2"]);
  assert(second?.stack[0]?.includes("checker_test.ts"), `the place is ${second?.stack[0]}`);
});

test(...needs(missingGpus(), "freed memory of a pool is reported when it is used or freed again on a GPU"), () => {
  const cuda = Cuda.open({ check: { onReport: () => {} } });
  const device = cuda.device(0);
  const { driver } = cuda;
  const codes: number[] = [];
  {
    using stream = device.createStream();
    using resource = new DeviceMemoryResource(device, {});
    const buffer = resource.allocate(4096, { stream });
    const { ptr } = buffer;
    buffer.close();
    stream.synchronize();
    device.withContext(() => {
      codes.push(driver.fill.cuMemsetD8Async(ptr, 1, 64n, stream.handle));
      codes.push(driver.pool.cuMemFreeAsync(ptr, stream.handle));
    });
  }
  const seen = cuda.reports.map(({ kind }) => kind);
  cuda.close();
  assertEquals(seen, ["use-after-free", "double-free"], `the driver itself answers ${codes.join(", ")}`);
});
