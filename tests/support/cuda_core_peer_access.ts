/**
 * What cuda.core's `peer_accessible_by` does, as behaviours of `peerAccessibleBy`. Where ours differs on purpose, the
 * name says what ours does and a comment why.
 *
 * @module
 */
import { assert, assertEquals, assertInstanceOf, assertStrictEquals, assertThrows } from "@std/assert";
import { CU_MEM_ACCESS_FLAGS_PROT } from "../../bindings/cuda_types.ts";
import {
  type Cuda,
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  MemoryBuffer,
  PeerAccessSet,
} from "../../mod.ts";
import type { Behaviour } from "./cuda_root.ts";
import { intercept } from "./intercept.ts";
import { enqueueCopy } from "../../src/device/mod.ts";

/** Counts the calls to the driver while some work runs. */
function callsOf(cuda: Cuda, work: () => unknown): { readonly sets: number; readonly gets: number } {
  let [sets, gets] = [0, 0];
  const restore = intercept(cuda.driver, "pool", ({ cuMemPoolSetAccess, cuMemPoolGetAccess }) => ({
    cuMemPoolSetAccess: (...args) => (sets++, cuMemPoolSetAccess(...args)),
    cuMemPoolGetAccess: (...args) => (gets++, cuMemPoolGetAccess(...args)),
  }));
  try {
    work();
  } finally {
    restore();
  }
  return { sets, gets };
}

const ordinals = (set: Iterable<{ readonly ordinal: number }>) => [...set].map(({ ordinal }) => ordinal);

/** Fills memory of device 0 and copies it on a stream of device 1. @returns whether the bytes arrived, or the error */
function reach(cuda: Cuda, resource: DeviceMemoryResource): boolean | string {
  const [owner, peer] = [cuda.device(0), cuda.device(1)];
  using here = owner.createStream();
  using there = peer.createStream();
  using source = resource.allocate(256, { stream: here });
  using target = peer.memory.allocate(256, { stream: there });
  using sink = new HostMemoryResource().allocate(256);
  source.fill(0x3c, { stream: here });
  there.wait(here);
  try {
    enqueueCopy(there, target.ptr, source.ptr, 256, "DtoD"); // as within one device: buffers would use peer copies
    target.copyTo(sink, { stream: there });
  } catch (error) {
    if (error instanceof CudaError) return error.codeName;
    throw error;
  } finally {
    here.wait(there);
    there.synchronize();
  }
  return sink.bytes().every((byte) => byte === 0x3c);
}

/** The behaviours. */
export const cudaCorePeerAccess: readonly Behaviour[] = [
  {
    name: "without access a copy is CUDA_ERROR_INVALID_VALUE, with access it arrives, and without it again it does not",
    devices: 2,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      assertEquals(reach(cuda, resource), "CUDA_ERROR_INVALID_VALUE");
      resource.peerAccessibleBy = [cuda.device(1)];
      assertEquals(reach(cuda, resource), true);
      resource.peerAccessibleBy = [];
      assertEquals(reach(cuda, resource), "CUDA_ERROR_INVALID_VALUE");
    },
  },
  {
    name: "memory that a stream's device cannot reach is named, with both ways out, and nothing is done",
    devices: 2,
    run(root) {
      using cuda = root.open();
      const [near, far] = [cuda.device(0), cuda.device(1)];
      using resource = new DeviceMemoryResource(far, {});
      using stream = near.createStream();
      using home = far.createStream();
      using buffer = resource.allocate(256, { stream: home });
      buffer.fill(1, { stream: home });
      home.synchronize();
      using host = new HostMemoryResource().allocate(256);
      host.bytes().fill(2);
      const attempts = [
        () => buffer.copyTo(host, { stream }),
        () => buffer.copyFrom(host, { stream }),
        () => buffer.fill(3, { stream }),
      ];
      for (const attempt of attempts) {
        const error = assertThrows(
          attempt,
          CudaError,
          "device 0, the stream's device, has no access to memory of device 1",
        );
        assertEquals([error.codeName, error.message.endsWith("peerAccessibleBy.add(0)")], [
          "CUDA_ERROR_INVALID_VALUE",
          true,
        ]);
      }
      near.synchronize();
      assertEquals(new Set(host.bytes()), new Set([2]));
      resource.peerAccessibleBy.add(0);
      stream.wait(home);
      for (const attempt of attempts) attempt();
      home.wait(stream);
      buffer.copyTo(host, { stream: home });
      home.synchronize();
      assertEquals(new Set(host.bytes()), new Set([3]));
    },
  },
  {
    name: "any set of peers becomes any other, in one call, or in none if they are the same",
    devices: 3,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const states = [[], [1], [2], [1, 2]];
      for (const from of states) {
        for (const to of states) {
          resource.peerAccessibleBy = from;
          const { sets } = callsOf(cuda, () => resource.peerAccessibleBy = to);
          assertEquals([ordinals(resource.peerAccessibleBy), sets], [to, from === to ? 0 : 1]);
          assertEquals(reach(cuda, resource), to.includes(1) ? true : "CUDA_ERROR_INVALID_VALUE");
        }
      }
    },
  },
  {
    name:
      "resources over one pool, and sets got at different times, always agree: the driver is asked, nothing is cached",
    devices: 2,
    run(root) {
      using cuda = root.open();
      const [one, other] = [new DeviceMemoryResource(cuda.device(0)), new DeviceMemoryResource(cuda.device(0))];
      const early = one.peerAccessibleBy;
      other.peerAccessibleBy.add(1);
      assertEquals([early.has(1), early.size, one.peerAccessibleBy.has(1)], [true, 1, true]);
      early.clear();
      assertEquals(other.peerAccessibleBy.size, 0);
      assertEquals(callsOf(cuda, () => early.has(1)), { sets: 0, gets: 1 });
      assertEquals(callsOf(cuda, () => [...early]), { sets: 0, gets: cuda.devices.length - 1 });
      assertEquals(callsOf(cuda, () => early.size), { sets: 0, gets: cuda.devices.length - 1 });
    },
  },
  {
    name: "it behaves as a Set of one member does",
    devices: 2,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const peer = cuda.device(1);
      const set = resource.peerAccessibleBy;
      assertEquals([set.size, [...set], set.has(peer)], [0, [], false]);
      assertStrictEquals(set.add(peer), set);
      assertStrictEquals(set.add(peer), set);
      assertEquals([set.size, ordinals(set), ordinals(set.keys()), ordinals(set.values())], [1, [1], [1], [1]]);
      assertEquals([...set.entries()].map(([key, value]) => key === value && key === peer), [true]);
      const seen: unknown[] = [];
      set.forEach((value, key, of) => seen.push(value === key, of === set));
      assertEquals(seen, [true, true]);
      assertEquals([set.delete(peer), set.delete(peer)], [true, false]); // remove() of what is missing is a KeyError there
      set.add(peer).clear();
      assertEquals(set.size, 0);
    },
  },
  {
    name: "the results of union and its like are plain Sets, which stay unchanged",
    devices: 2,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const [owner, peer] = [cuda.device(0), cuda.device(1)];
      const set = resource.peerAccessibleBy.add(peer);
      const plain = [
        set.union(new Set([owner])),
        set.intersection(new Set([peer, owner])),
        set.difference(new Set([owner])),
        set.symmetricDifference(new Set([owner])),
      ];
      assertEquals(plain.map((one) => ordinals(one).sort()), [[0, 1], [1], [1], [0, 1]]);
      for (const one of plain) assertEquals(Object.getPrototypeOf(one), Set.prototype);
      for (const one of plain) one.clear();
      assertEquals([set.size, set.isSubsetOf(new Set(cuda.devices))], [1, true]);
      assertEquals([set.isSupersetOf(new Set([peer])), set.isDisjointFrom(new Set([owner]))], [true, true]);
    },
  },
  {
    name: "devices are given as such or as ordinals",
    devices: 2,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const set = resource.peerAccessibleBy;
      for (const peer of [1, cuda.device(1)]) {
        set.add(peer);
        assertEquals([set.has(1), set.has(cuda.device(1))], [true, true]);
        set.delete(peer);
        set.addAll([peer]).deleteAll([peer]);
        resource.peerAccessibleBy = [peer];
        assertEquals(ordinals(set), [1]);
        set.clear();
      }
    },
  },
  {
    name: "the owner is dropped from every change, and is no member",
    devices: 2,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const owner = cuda.device(0);
      const set = resource.peerAccessibleBy;
      const changes = () => {
        set.add(owner).add(0).addAll([owner, 0]).toggleAll([owner]).deleteAll([0]).retainAll([0]);
        set.delete(owner);
        resource.peerAccessibleBy = [owner];
      };
      assertEquals(callsOf(cuda, changes).sets, 0);
      assertEquals([set.has(owner), set.has(0), set.size], [false, false, 0]);
      resource.peerAccessibleBy = [0, 1];
      assertEquals(ordinals(set), [1]);
    },
  },
  {
    // There, None is the current device, and a value that is no device is a ValueError, a TypeError or a CUDAError by
    // its kind.
    name: "anything but another device cannot be given access, which changes nothing, and can be queried and removed",
    devices: 2,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const set = resource.peerAccessibleBy;
      const wrong: unknown[] = [-1, cuda.devices.length, 1.5, NaN, null, undefined, "1", {}];
      for (const one of wrong) {
        const device = one as number; // what a caller without types may pass
        const adding = () => {
          assertThrows(() => set.add(device), RangeError, "expected a device of the same Cuda, or an ordinal");
          assertThrows(() => set.addAll([1, device]), RangeError, "expected a device of the same Cuda");
          assertThrows(() => resource.peerAccessibleBy = [1, device], RangeError, "expected a device of the same Cuda");
          assertThrows(() => set.toggleAll([device]), RangeError, "expected a device of the same Cuda");
        };
        assertEquals(callsOf(cuda, adding).sets, 0);
        assertEquals([set.has(device), set.delete(device)], [false, false]);
        set.add(1).deleteAll([device]);
        assertEquals(ordinals(set), [1]);
        set.retainAll([device]);
        assertEquals(set.size, 0);
      }
    },
  },
  {
    name: "members are in ascending order, however they were added",
    devices: 3,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(1), {});
      const rest = ordinals(cuda.devices).filter((ordinal) => ordinal !== 1);
      for (const one of rest.toReversed()) resource.peerAccessibleBy.add(one);
      assertEquals(ordinals(resource.peerAccessibleBy), rest);
      resource.peerAccessibleBy = rest.toReversed();
      assertEquals(ordinals(resource.peerAccessibleBy), rest);
    },
  },
  {
    name: "it says what it is",
    devices: 1,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      assertInstanceOf(resource.peerAccessibleBy, PeerAccessSet);
      assertEquals(Object.prototype.toString.call(resource.peerAccessibleBy), "[object PeerAccessSet]");
    },
  },
  {
    name: "each change of many is one call to the driver, each of one at most one, and no call is repeated",
    devices: 3,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const set = resource.peerAccessibleBy;
      const all = cuda.devices;
      const changes: readonly (readonly [what: string, sets: number, work: () => unknown])[] = [
        ["assign all", 1, () => resource.peerAccessibleBy = all],
        ["assign all again", 0, () => resource.peerAccessibleBy = all],
        ["assign one of them", 1, () => resource.peerAccessibleBy = [1]],
        ["add another", 1, () => set.add(2)],
        ["add it again", 0, () => set.add(2)],
        ["remove one and a stranger", 1, () => set.deleteAll([1, 99])],
        ["remove it again", 0, () => set.deleteAll([1])],
        ["toggle both", 1, () => set.toggleAll([1, 2])],
        ["keep none of the others", 1, () => set.retainAll([2])],
        ["keep none again", 0, () => set.retainAll([])],
        ["get, change and set back", 1, () => resource.peerAccessibleBy = set.addAll([1, 2])],
        ["remove itself from itself", 1, () => set.deleteAll(set)],
        ["clear nothing", 0, () => set.clear()],
        ["remove what is not there", 0, () => set.delete(1)],
      ];
      for (const [what, sets, work] of changes) assertEquals(callsOf(cuda, work).sets, sets, what);
      assertEquals(set.size, 0);
    },
  },
  {
    name: "access to read only is no access",
    devices: 2,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const set = resource.peerAccessibleBy.add(1);
      assert(set.has(1));
      // No driver grants it at the moment: the answer is changed in transit.
      const restore = intercept(cuda.driver, "pool", ({ cuMemPoolGetAccess }) => ({
        cuMemPoolGetAccess(flags, pool, location) {
          const code = cuMemPoolGetAccess(flags, pool, location);
          MemoryBuffer.fromPointer(flags, 4).bytes()[0] = CU_MEM_ACCESS_FLAGS_PROT.READ;
          return code;
        },
      }));
      assertEquals([set.has(1), set.size], [false, 0]);
      restore();
      assert(set.has(1));
    },
  },
  {
    // There, the question is asked in the opposite direction, whether the owner reaches the peer, which is the same on
    // real machines.
    name: "whether a device reaches the memory is asked in the direction that is granted, and not to take access away",
    devices: 2,
    run(root) {
      using cuda = root.open();
      using resource = new DeviceMemoryResource(cuda.device(0), {});
      const asked: [number, number][] = [];
      const restore = intercept(cuda.driver, "device", ({ cuDeviceCanAccessPeer }) => ({
        cuDeviceCanAccessPeer(out, from, to) {
          asked.push([from, to]);
          return cuDeviceCanAccessPeer(out, from, to);
        },
      }));
      resource.peerAccessibleBy.add(1);
      resource.peerAccessibleBy.delete(1);
      resource.peerAccessibleBy.clear();
      restore();
      assertEquals(asked, [[1, 0]]);
    },
  },
];
