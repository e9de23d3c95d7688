/**
 * What kernels accept as arguments, on a real GPU and on a simulated one.
 *
 * @module
 */
import { assertEquals, assertThrows } from "@std/assert";
import {
  DeviceMemoryResource,
  ManagedMemoryResource,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { addPtx } from "./graph_behaviours.ts";
import type { Behaviour } from "../support/cuda_root.ts";

/** `farthest(out, at)`: writes a word at byte `at` of shared memory, and back to `out`. */
const farthestPtx = `
.version 7.0
.target sm_52
.address_size 64
.extern .shared .align 4 .b8 block[];
.visible .entry farthest(.param .u64 out, .param .u32 at)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [at];
  mov.u32 %r2, block;
  add.u32 %r2, %r2, %r1;
  st.shared.u32 [%r2], 7;
  ld.shared.u32 %r3, [%r2];
  st.global.u32 [%rd1], %r3;
  ret;
}`;

/** The behaviours. */
export const argumentBehaviours: readonly Behaviour[] = [
  {
    name: "a view is passed as the address of its first element, whatever it selects",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      using program = device.loadPtx(addPtx);
      using host = new PinnedMemoryResource(device).allocate(64);
      using buffer = new DeviceMemoryResource(device).allocate(64, { stream });
      buffer.fill(0, { stream });
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [3, 4], dtype: "uint32", offset: 16 });
      const row = view.sliced(1, slice(2, null, null)); // elements 6 and 7, which are words 10 and 11
      assertEquals(row.ptr, buffer.ptr + 40n);
      program.kernel("add").launch(stream, 1, 2, [row, ["uint32", 2], ["uint32", 7]]);
      buffer.copyTo(host, { stream });
      stream.synchronize();
      const words = [...new Uint32Array(host.bytes().buffer, host.bytes().byteOffset, 16)];
      assertEquals(words, Array.from({ length: 16 }, (_, i) => i === 10 || i === 11 ? 7 : 0));
      const empty = view.sliced(slice(0, 0, null));
      program.kernel("add").launch(stream, 1, 1, [empty, ["uint32", 0], ["uint32", 7]]);
      stream.synchronize();
    },
  },

  {
    name: "memory of every kind that kernels can use is accepted, and that of the host is not",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      using program = device.loadPtx(addPtx);
      const add = program.kernel("add");
      const kinds = [PinnedMemoryResource, ManagedMemoryResource, SynchronousMemoryResource, DeviceMemoryResource];
      for (const Resource of kinds) {
        using buffer = new Resource(device).allocate(16, { stream });
        buffer.fill(0, { stream });
        add.launch(stream, 1, 4, [buffer, ["uint32", 4], ["uint32", 1]]);
        add.launch(stream, 1, 4, [buffer.ptr, ["uint32", 4], ["uint32", 1]]);
        stream.synchronize();
        if (buffer.isHostAccessible) assertEquals([...buffer.bytes()].slice(0, 5), [2, 0, 0, 0, 2], Resource.name);
      }
      const host = StridedMemoryView.fromTypedArray(new Uint32Array(4));
      assertThrows(() => add.launch(stream, 1, 1, [host, ["uint32", 4], ["uint32", 1]]), TypeError, "host memory");
    },
  },

  {
    name: "the driver reports a kernel's parameters, and arguments that do not fit them are refused",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      using program = device.loadPtx(addPtx);
      const add = program.kernel("add");
      const [major, minor] = cuda.driverVersion;
      if (major < 12 || (major === 12 && minor < 4)) return assertEquals(add.parameters, null);
      assertEquals(add.parameters, [{ offset: 0, size: 8 }, { offset: 8, size: 4 }, { offset: 12, size: 4 }]);
      assertThrows(() => add.launch(stream, 1, 1, [0n, ["uint32", 1]]), TypeError, "expected 3 arguments");
      assertThrows(() => add.launch(stream, 1, 1, [0n, ["uint8", 1], ["uint32", 1]]), TypeError, "expected 4 bytes");
      assertThrows(() => add.launch(stream, 1, 1, [0n, 1n, ["uint32", 1]]), TypeError, "argument 1: expected 4 bytes");
      stream.synchronize();
    },
  },

  {
    name: "memory of another device is accepted if that device gives access, and refused before the launch if not",
    devices: 2,
    run(root) {
      using cuda = root.open();
      const [device, other] = [cuda.device(0), cuda.device(1)];
      if (!device.canAccessPeer(other)) return;
      using stream = device.createStream();
      using home = other.createStream();
      using pool = new DeviceMemoryResource(other, {});
      using buffer = pool.allocate(16, { stream: home });
      using plain = new SynchronousMemoryResource(other).allocate(16);
      using managed = new ManagedMemoryResource(other).allocate(16); // every device can access it
      using host = new PinnedMemoryResource(device).allocate(16);
      using program = device.loadPtx(addPtx);
      const add = program.kernel("add");
      buffer.fill(0, { stream: home });
      stream.wait(home);
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint32" });
      for (const memory of [buffer, view, plain]) {
        const launch = () => add.launch(stream, 1, 4, [memory, ["uint32", 4], ["uint32", 3]]);
        assertThrows(launch, TypeError, "that device 0 can reach, got memory of device 1");
      }
      managed.bytes().fill(0);
      add.launch(stream, 1, 4, [managed, ["uint32", 4], ["uint32", 3]]);
      stream.synchronize();
      assertEquals(managed.bytes()[12], 3);
      pool.peerAccessibleBy.add(device);
      for (const memory of [buffer, view]) add.launch(stream, 1, 4, [memory, ["uint32", 4], ["uint32", 3]]);
      home.wait(stream);
      buffer.copyTo(host, { stream: home });
      home.synchronize();
      assertEquals(host.bytes()[12], 6);
      pool.peerAccessibleBy = [];
      const launch = () => add.launch(stream, 1, 4, [buffer, ["uint32", 4], ["uint32", 3]]);
      assertThrows(launch, TypeError, "peerAccessibleBy");
      stream.synchronize();
    },
  },

  {
    name: "a kernel gets all shared memory that the device has for a block, also if it was captured, and no more",
    devices: 1,
    run(root) {
      using cuda = root.open();
      const device = cuda.device(0);
      using stream = device.createStream();
      using program = device.loadPtx(farthestPtx);
      using out = new PinnedMemoryResource(device).allocate(4, { stream });
      const most = device.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN");
      const farthest = program.kernel("farthest");
      const launch = (sharedBytes: number) =>
        farthest.launch(stream, 1, 1, [out, ["uint32", sharedBytes - 4]], { sharedBytes });
      using graph = stream.capture(() => launch(49_156)); // the first to ask for more than every device has
      using exec = graph.instantiate();
      for (const work of [() => exec.launch(stream), () => launch(4), () => launch(most), () => launch(49_152)]) {
        out.bytes().fill(0);
        work();
        stream.synchronize();
        assertEquals(out.bytes()[0], 7);
      }
      assertThrows(() => launch(most + 4), RangeError, `allows a block at most ${most}`);
    },
  },
];
