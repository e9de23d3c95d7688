/**
 * Pools of all devices of the machine, each accessible or not from each other device: granted access works, memory
 * not granted stays inaccessible, each change is one driver call, and a copy arrives either way.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda, CudaError, DeviceMemoryResource, HostMemoryResource } from "../../mod.ts";
import { enqueueCopy } from "../../src/device/mod.ts";
import { patiently } from "../support/child.ts";
import { missingGpus } from "../support/gpu.ts";
import { intercept } from "../support/intercept.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

const bytes = 4096;

const [title, options] = needs(
  missingGpus(2),
  "devices that were granted access to a pool's memory can use it, and no others",
);

test(title, { ...options, ...patiently }, () => {
  using cuda = Cuda.open();
  const { devices } = cuda;
  const all = devices.map((_, i) => i);
  const access = fc.tuple(...all.map((owner) => fc.subarray(all.filter((one) => one !== owner))));
  const resources = devices.map((device) => new DeviceMemoryResource(device, {}));
  const streams = devices.map((device) => device.createStream());
  const at = <T>(list: readonly T[], i: number): T => {
    const one = list[i];
    if (one === undefined) throw new RangeError(`No ${i}`);
    return one;
  };
  using sink = new HostMemoryResource().allocate(bytes);
  let pairs = 0;
  check(
    fc.property(fc.array(access, { minLength: 1, maxLength: 4 }), (changes) => {
      let granted: readonly (readonly number[])[] = resources.map(({ peerAccessibleBy }) =>
        [...peerAccessibleBy].map(({ ordinal }) => ordinal)
      );
      for (const wanted of changes) {
        for (const [owner, peers] of wanted.entries()) {
          const isNew = peers.length !== granted[owner]?.length || peers.some((one) => !granted[owner]?.includes(one));
          let calls = 0;
          const undo = intercept(cuda.driver, "pool", ({ cuMemPoolSetAccess }) => ({
            cuMemPoolSetAccess: (...args) => {
              calls++;
              return cuMemPoolSetAccess(...args);
            },
          }));
          at(resources, owner).peerAccessibleBy = peers;
          undo();
          assertEquals(calls, isNew ? 1 : 0, `calls to grant ${peers} after ${granted[owner]}`);
        }
        granted = wanted;
        for (const owner of all) {
          using source = at(resources, owner).allocate(bytes, { stream: at(streams, owner) });
          source.fill(owner + 1, { stream: at(streams, owner) });
          for (const user of all) {
            if (user === owner) continue;
            const stream = at(streams, user);
            using target = at(devices, user).memory.allocate(bytes, { stream });
            stream.wait(at(streams, owner));
            // As a copy within one device, which the driver does if, and only if, it may access the other's memory.
            const copy = () => enqueueCopy(stream, target.ptr, source.ptr, bytes, "DtoD");
            if (granted[owner]?.includes(user)) copy();
            else {
              assertThrows(copy, CudaError, "CUDA_ERROR_INVALID_VALUE");
              target.copyFrom(source, { stream }); // this needs no access
            }
            target.copyTo(sink, { stream });
            stream.synchronize();
            assertEquals([...new Set(sink.bytes())], [owner + 1], `${user} reads ${owner}'s memory`);
            pairs++;
          }
        }
      }
    }),
    20,
    { endOnFailure: true },
  );
  for (const one of [...resources, ...streams]) one.close();
  console.log(`${pairs} uses of another's memory on ${devices.length} devices`);
});
