/** What the driver reports about addresses. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  type MemoryResource,
  PinnedMemoryResource,
} from "../../mod.ts";

test("the driver knows the kind and device of an address, also inside an allocation, and ordinary memory as such", () => {
  using cuda = Cuda.simulate({ devices: 3 });
  const device = cuda.device(2);
  const resources: { readonly [kind: string]: MemoryResource } = {
    device: new DeviceMemoryResource(device),
    pinned: new PinnedMemoryResource(device),
    managed: new ManagedMemoryResource(device),
    host: new HostMemoryResource(),
  };
  for (const [kind, resource] of Object.entries(resources)) {
    using buffer = resource.allocate(64);
    for (const ptr of [buffer.ptr, buffer.ptr + 63n]) {
      assertEquals(cuda.pointerAttributes(ptr), { kind, device: kind === "host" ? null : device });
    }
  }
  assertEquals(cuda.pointerAttributes(0n).kind, "host");
  cuda.close();
  assertThrows(() => cuda.pointerAttributes(0n), TypeError, "closed Cuda");
});
