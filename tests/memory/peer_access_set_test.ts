/** Peer access is a Set in every respect, by random programs over a simulated driver of several devices. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, type CudaDevice, CudaError, DeviceMemoryResource } from "../../mod.ts";
import { isAccessWithheld } from "../../src/memory/peer_access.ts";
import { check, fc } from "../support/property.ts";

const devices = 5;

/** A simulated driver that counts its calls of cuMemPoolSetAccess. */
function counting(): { readonly cuda: Cuda; readonly calls: () => number } {
  const cuda = Cuda.simulate({ devices, seed: 1 });
  const { pool } = cuda.driver;
  let count = 0;
  const cuMemPoolSetAccess = (...args: Parameters<typeof pool.cuMemPoolSetAccess>) => {
    count++;
    return pool.cuMemPoolSetAccess(...args);
  };
  Object.defineProperty(cuda.driver, "pool", { value: { ...pool, cuMemPoolSetAccess } });
  return { cuda, calls: () => count };
}

type Change = "addAll" | "deleteAll" | "retainAll" | "toggleAll" | "replace";
const changes: readonly Change[] = ["addAll", "deleteAll", "retainAll", "toggleAll", "replace"];

/** What each change does to a plain Set that never holds the owner. */
const meaning: { readonly [C in Change]: (set: Set<number>, others: Set<number>) => Set<number> } = {
  addAll: (set, others) => set.union(others),
  deleteAll: (set, others) => set.difference(others),
  retainAll: (set, others) => set.intersection(others),
  toggleAll: (set, others) => set.symmetricDifference(others),
  replace: (_, others) => others,
};

const everybody = new Set(Array.from({ length: devices }, (_, ordinal) => ordinal));

const ascending = (set: Iterable<number>) => [...set].sort((a, b) => a - b);

test("every change does what its name says to the set, in one driver call at most and none if nothing changes", () => {
  const { cuda, calls } = counting();
  check(
    fc.property(
      fc.nat(devices - 1),
      fc.array(fc.tuple(fc.constantFrom(...changes), fc.array(fc.nat(devices - 1), { maxLength: 7 }), fc.boolean())),
      (owner, program) => {
        using resource = new DeviceMemoryResource(cuda.device(owner), {});
        const again = resource.peerAccessibleBy;
        let model = new Set<number>();
        let withheld = new Set<number>();
        for (const [change, ordinals, asDevices] of program) {
          const given = asDevices ? ordinals.map((ordinal) => cuda.device(ordinal)) : ordinals;
          const before = calls();
          const next = meaning[change](model, new Set(ordinals));
          next.delete(owner);
          assertEquals(resource.peerAccessibleBy[change](given), again);
          assertEquals(calls() - before, next.symmetricDifference(model).size === 0 ? 0 : 1, change);
          model = next;
          // A change that lists all peers with access denies all others; an incremental change concerns only its own.
          const mentioned = change === "replace" || change === "retainAll" ? everybody : new Set(ordinals);
          const denied = change === "addAll" ? new Set<number>() : mentioned.difference(model);
          withheld = withheld.union(denied).difference(model);
          withheld.delete(owner);
          const { driver, handle } = { driver: cuda.driver, handle: resource.pool.handle };
          const isWithheld = [...everybody].filter((ordinal) => isAccessWithheld(driver, handle, ordinal));
          assertEquals(isWithheld, ascending(withheld), "copies may enable access that no change has denied");
          assertEquals([...again].map(({ ordinal }) => ordinal), ascending(model));
          assertEquals(again.size, model.size);
        }
      },
    ),
    300,
  );
});

test("its read methods answer as those of a plain Set with its members", () => {
  const { cuda } = counting();
  const subset = fc.subarray([...cuda.devices]);
  check(
    fc.property(subset, subset, (granted, others) => {
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      resource.peerAccessibleBy = granted;
      const peers = resource.peerAccessibleBy;
      const plain = new Set(granted.filter(({ ordinal }) => ordinal !== 0));
      const other = new Set(others);
      for (const device of cuda.devices) {
        assertEquals(peers.has(device), plain.has(device));
        assertEquals(peers.has(device.ordinal), plain.has(device));
      }
      assertEquals([...peers.keys()], [...plain.keys()]);
      assertEquals([...peers.values()], [...plain.values()]);
      assertEquals([...peers.entries()], [...plain.entries()]);
      const seen: CudaDevice[] = [];
      peers.forEach((device) => seen.push(device));
      assertEquals(seen, [...plain]);
      assertEquals(peers.union(other), plain.union(other));
      assertEquals(peers.intersection(other), plain.intersection(other));
      assertEquals(peers.difference(other), plain.difference(other));
      assertEquals(peers.symmetricDifference(other), plain.symmetricDifference(other));
      assertEquals(other.union(peers), other.union(plain));
      assertEquals(other.isSupersetOf(peers), other.isSupersetOf(plain));
      assertEquals(peers.isSubsetOf(other), plain.isSubsetOf(other));
      assertEquals(peers.isSupersetOf(other), plain.isSupersetOf(other));
      assertEquals(peers.isDisjointFrom(other), plain.isDisjointFrom(other));
      assertEquals(Object.getPrototypeOf(peers.union(other)), Set.prototype);
    }),
    200,
  );
});

test("two resources over one pool always agree, and neither caches anything", () => {
  const { cuda } = counting();
  const [one, other] = [new DeviceMemoryResource(cuda.device(1)), new DeviceMemoryResource(cuda.device(1))];
  one.peerAccessibleBy.add(2);
  assertEquals([...other.peerAccessibleBy].map(({ ordinal }) => ordinal), [2]);
  other.peerAccessibleBy.clear();
  assertEquals(one.peerAccessibleBy.has(2), false);
});

test("a value that is no device is refused before anything changes; querying or removing it is harmless", () => {
  const { cuda, calls } = counting();
  const elsewhere = Cuda.simulate({ devices: 2 }).device(1);
  using resource = new DeviceMemoryResource(cuda.device(0), {});
  const peers = resource.peerAccessibleBy;
  for (const wrong of [elsewhere, devices, -1, 1.5, NaN]) {
    assertThrows(() => peers.addAll([1, wrong]), RangeError, "expected a device of the same Cuda");
    assertThrows(() => resource.peerAccessibleBy = [wrong], RangeError);
    assertEquals([peers.has(wrong), peers.delete(wrong)], [false, false]);
    peers.deleteAll([wrong]).retainAll([wrong]);
  }
  assertEquals(calls(), 0);
});

test("what is no list of devices is refused", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const pool = new DeviceMemoryResource(cuda.device(0), {});
  for (const value of [1, null, undefined, cuda.device(1)]) {
    assertThrows(() => pool.peerAccessibleBy = value as never, TypeError, "expected devices");
  }
  pool.close();
});

test("devices without a path to the memory are all named, and nothing changes", () => {
  const { cuda, calls } = counting();
  const { device } = cuda.driver;
  const asked: [number, number][] = [];
  const cuDeviceCanAccessPeer = (out: bigint, from: number, to: number) => {
    asked.push([from, to]);
    return device.cuDeviceCanAccessPeer(out, from, from === 2 || from === 4 ? from : to);
  };
  Object.defineProperty(cuda.driver, "device", { value: { ...device, cuDeviceCanAccessPeer } });
  using resource = new DeviceMemoryResource(cuda.device(0), {});
  const error = assertThrows(() => resource.peerAccessibleBy = cuda.devices, RangeError, "devices 2, 4:");
  assert(error.message.includes("memory of device 0"));
  assertEquals([calls(), resource.peerAccessibleBy.size], [0, 0]);
  assertThrows(
    () => resource.peerAccessibleBy.add(2),
    RangeError,
    "Cannot give access to device 2: no path from there",
  );
  assertEquals(asked.splice(4), [[2, 0]]);
  assertEquals(asked, [[1, 0], [2, 0], [3, 0], [4, 0]]); // the peer accesses the owner: the direction that is granted
});

test("a query or a change that the driver refuses is an error, not an answer", () => {
  const cuda = Cuda.simulate({ devices: 2 });
  const simulated = SimulatedDriver.of(cuda.driver);
  using resource = new DeviceMemoryResource(cuda.device(0), {});
  const peers = resource.peerAccessibleBy;
  simulated?.failNth("cuMemPoolGetAccess", 1, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => peers.has(1), CudaError, "cuMemPoolGetAccess failed with CUDA_ERROR_UNKNOWN");
  simulated?.failNth("cuMemPoolSetAccess", 1, CUresult.CUDA_ERROR_UNKNOWN);
  assertThrows(() => peers.add(1), CudaError, "cuMemPoolSetAccess failed with CUDA_ERROR_UNKNOWN");
  assertEquals(peers.size, 0);
});
