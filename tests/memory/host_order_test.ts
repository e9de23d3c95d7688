/** Pageable host memory in stream order: the host does the work when the stream has reached it. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, DeviceMemoryResource, HostMemoryResource } from "../../mod.ts";

const size = 64;

test("copies and fills of ordinary memory on a stream come after the stream's earlier work", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream();
  const host = new HostMemoryResource();
  using memory = new DeviceMemoryResource(device).allocate(size, { stream });
  using first = host.allocate(size);
  using second = host.allocate(size);
  for (const one of [first, second]) one.fill(1);
  memory.fill(9, { stream });
  memory.copyTo(first, { stream });
  second.copyFrom(first, { stream });
  assertEquals(new Set(second.bytes()), new Set([9]), "a copy reads the result of earlier work");
  first.fill(5);
  memory.copyFrom(first, { stream });
  first.fill(0, { stream });
  memory.copyTo(second, { stream });
  stream.synchronize();
  assertEquals(new Set(second.bytes()), new Set([5]), "a fill comes after earlier reads");
});

test("memory that is closed on a stream is freed when the stream has reached that point", () => {
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stream = device.createStream();
  using memory = new DeviceMemoryResource(device).allocate(size, { stream });
  let freed = 0;
  const host = new HostMemoryResource();
  for (let round = 0; round < 8; round++) {
    const source = host.allocate(size);
    source.fill(7);
    const { ptr } = source;
    // By the driver itself: only the caller knows that the memory is read.
    cuda.driver.copy.cuMemcpyHtoDAsync_v2(memory.ptr, ptr, BigInt(size), stream.handle);
    source.close(stream);
    using other = host.allocate(size); // would get the same memory
    freed += Number(other.ptr === ptr);
    other.fill(3);
    using seen = host.allocate(size);
    memory.copyTo(seen, { stream });
    stream.synchronize();
    assertEquals(new Set(seen.bytes()), new Set([7]));
  }
  assertEquals(freed, 0);
});
