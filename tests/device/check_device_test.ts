/** Objects of a closed Cuda, of another Cuda or of another device are refused, and the driver is not called. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, DeviceMemoryResource } from "../../mod.ts";

test("a device of a closed Cuda answers no query: the memory that the driver writes to is freed with it", () => {
  const cuda = Cuda.simulate({ devices: 2 });
  const [device, peer] = [cuda.device(0), cuda.device(1)];
  const resource = new DeviceMemoryResource(device);
  cuda.close();
  const attempts = [
    () => device.attribute("WARP_SIZE"),
    () => device.computeCapability,
    () => device.totalMemory,
    () => device.driverVersion,
    () => device.canAccessPeer(peer),
    () => device.compile('extern "C" __global__ void nothing() {}'),
    () => device.createStream(),
    () => new DeviceMemoryResource(device),
    () => resource.allocate(8),
    () => resource.peerAccessibleBy.add(peer),
  ];
  // Repeated: a write to freed memory need not show the first time.
  for (let i = 0; i < 200; i++) {
    for (const attempt of attempts) assertThrows(attempt, TypeError, "its Cuda is closed", `${attempt}`);
  }
  assertEquals(device.isActive, false);
});

test("an event ends with the context of its Cuda: closing it is harmless, using it an error", () => {
  const cuda = Cuda.simulate();
  const event = cuda.device(0).createEvent();
  const timed = [1, 2].map(() => cuda.device(0).createEvent({ timing: true }));
  const [start, end] = timed;
  cuda.close();
  assertThrows(() => event.synchronize(), TypeError, "its Cuda is closed");
  assertThrows(() => event.isDone, TypeError, "its Cuda is closed");
  if (start !== undefined) assertThrows(() => end?.millisecondsSince(start), TypeError, "its Cuda is closed");
  for (const one of [event, ...timed]) one.close();
  assertThrows(() => event.synchronize(), TypeError, "closed CudaEvent");
});

test("a pool of another device or another Cuda is refused by a memory resource", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  using other = Cuda.simulate();
  const { pool } = new DeviceMemoryResource(cuda.device(0));
  assertEquals(new DeviceMemoryResource(cuda.device(0), pool).pool, pool);
  assertThrows(() => new DeviceMemoryResource(cuda.device(1), pool), TypeError, "expected one of device 1");
  assertThrows(() => new DeviceMemoryResource(other.device(0), pool), TypeError, "another Cuda");
});

test("devices that do not exist are all named, and no device gets access then", () => {
  using cuda = Cuda.simulate({ devices: 3 });
  using other = Cuda.simulate();
  const resource = new DeviceMemoryResource(cuda.device(0));
  const error = assertThrows(() => resource.peerAccessibleBy.addAll([1, 7, 0, other.device(0), 9]), RangeError);
  assertEquals(/device 7, device 0 of another Cuda, device 9 access/.test(error.message), true, error.message);
  assertEquals([...resource.peerAccessibleBy], []);
  resource.peerAccessibleBy.addAll([0, 1, cuda.device(2), cuda.device(0)]);
  assertEquals([...resource.peerAccessibleBy].map(({ ordinal }) => ordinal), [1, 2]);
});
