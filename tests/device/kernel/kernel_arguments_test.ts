/** The kernel receives what was passed, for every type that can be passed; arguments of another width are refused. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { SimulatedDriver } from "../../../src/public/sim.ts";
import {
  Cuda,
  DeviceMemoryResource,
  DType,
  type KernelArg,
  ManagedMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../../mod.ts";
import { addPtx } from "../../gpu/graph_behaviours.ts";
import { check, fc } from "../../support/property.ts";
import { simulatorOf } from "../../support/simulator_of.ts";

const types = {
  int8: 1,
  uint8: 1,
  bool: 1,
  int16: 2,
  uint16: 2,
  float16: 2,
  bfloat16: 2,
  int32: 4,
  uint32: 4,
  float32: 4,
  int64: 8,
  uint64: 8,
  float64: 8,
  complex64: 8,
  uint8x4: 4,
  int16x2: 4,
  float32x2: 8,
} as const;

/** A kernel that stores one parameter, of the given size in bytes, at the address in the other. */
function storePtx(bytes: number): string {
  return `.version 7.0
.target sm_52
.address_size 64
.visible .entry store(.param .u64 out, .param .b${8 * bytes} value)
{
.reg .b64 %d<3>; .reg .b32 %r; .reg .b16 %h;
ld.param.u64 %d0, [out]; cvta.to.global.u64 %d1, %d0;
ld.param.b${8 * bytes} ${bytes === 8 ? "%d2" : bytes === 4 ? "%r" : "%h"}, [value];
st.global.b${8 * bytes} [%d1], ${bytes === 8 ? "%d2" : bytes === 4 ? "%r" : "%h"};
ret;
}`;
}

test("a number arrives as the bits of its type, and only at a parameter of its size", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using out = new DeviceMemoryResource(device).allocate(16, { stream });
  using host = new PinnedMemoryResource(device).allocate(16);
  const simulated = simulatorOf(cuda);
  const kernels = new Map([1, 2, 4, 8].map((bytes) => [bytes, device.loadPtx(storePtx(bytes)).kernel("store")]));
  const names = Object.keys(types) as (keyof typeof types)[]; // its own keys
  check(
    fc.property(
      fc.constantFrom(...names),
      fc.integer({ min: 0, max: 100 }),
      fc.constantFrom(1, 2, 4, 8),
      fc.boolean(),
      (name, n, bytes, isByName) => {
        const dtype = DType.from(name);
        const value = name === "bool"
          ? n % 2 === 1
          : name === "complex64"
          ? { re: n, im: -n }
          : dtype.lanes > 1
          ? Array.from({ length: dtype.lanes }, (_, lane) => n + lane)
          : dtype.name.endsWith("64") && !name.startsWith("f")
          ? BigInt(n)
          : n;
        const kernel = kernels.get(bytes);
        const argument: KernelArg = isByName ? [name, value] as KernelArg : [dtype, value]; // as: the two fit
        const launch = () => kernel?.launch(stream, 1, 1, [out, argument]);
        const launches = simulated.calls("cuLaunchKernel");
        if (bytes !== types[name]) {
          assertThrows(launch, TypeError, `store, argument 1: expected ${bytes} bytes`);
          assertEquals(simulated.calls("cuLaunchKernel"), launches);
          return;
        }
        out.fill(0xee, { stream });
        launch();
        out.copyTo(host, { stream });
        stream.synchronize();
        const expected = new Uint8Array(16).fill(0xee);
        dtype.write(new DataView(expected.buffer), 0, value);
        assertEquals(host.bytes(), expected);
      },
    ),
    500,
  );
});

test("a driver before CUDA 12.4 does not report the parameters: then any arguments are accepted", () => {
  using cuda = Cuda.simulate({ driverVersion: 12030 });
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(16, { stream });
  using program = device.loadPtx(addPtx);
  const add = program.kernel("add");
  assertEquals(add.parameters, null);
  buffer.fill(0, { stream });
  add.launch(stream, 1, 1, [buffer, ["int32", 1], ["int32", 5], ["float64", 1]]); // one more than there are
  stream.synchronize();
});

test("the driver is asked for the parameters of a kernel once", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(16, { stream });
  using program = device.loadPtx(addPtx);
  buffer.fill(0, { stream });
  const launch = () => program.kernel("add").launch(stream, 1, 1, [buffer, ["int32", 1], ["int32", 5]]);
  launch();
  const asked = SimulatedDriver.of(cuda.driver)?.calls("cuFuncGetParamInfo");
  for (let i = 0; i < 5; i++) launch();
  assertEquals([asked, SimulatedDriver.of(cuda.driver)?.calls("cuFuncGetParamInfo")], [4, 4]);
});

test("a kernel accepts memory exactly if its device can reach it, whichever device it belongs to", () => {
  const kinds = fc.constantFrom("pool", "opened pool", "synchronous", "managed", "pinned");
  check(
    fc.property(kinds, fc.nat(1), fc.nat(1), fc.boolean(), (kind, owner, at, isForeign) => {
      using cuda = Cuda.simulate({ devices: 2 });
      const [home, device] = [cuda.device(owner), cuda.device(at)];
      using pool = new DeviceMemoryResource(home, {});
      if (kind === "opened pool") pool.peerAccessibleBy.add(1 - owner);
      using stream = device.createStream();
      using own = kind === "synchronous"
        ? new SynchronousMemoryResource(home).allocate(4)
        : kind === "managed"
        ? new ManagedMemoryResource(home).allocate(4)
        : kind === "pinned"
        ? new PinnedMemoryResource(home).allocate(4)
        : pool.allocate(4, { stream: home.defaultStream });
      home.defaultStream.synchronize();
      // Foreign memory comes with a device, and no other information.
      using memory = isForeign && kind !== "pinned"
        ? MemoryBuffer.fromPointer(own.ptr, 4, { device: home, owner: own })
        : own;
      const add = device.loadPtx(addPtx).kernel("add");
      let isRefused = false;
      try {
        add.launch(stream, 1, 1, [memory, ["uint32", 1], ["uint32", 1]]);
      } catch (error) {
        assert(error instanceof TypeError && error.message.includes(`that device ${at} can reach`), String(error));
        isRefused = true;
      }
      stream.synchronize();
      // By its address, which is not checked.
      let isOutOfReach = false;
      try {
        add.launch(stream, 1, 1, [own.ptr, ["uint32", 1], ["uint32", 1]]);
        stream.synchronize();
      } catch {
        isOutOfReach = true;
      }
      assertEquals(isRefused, isOutOfReach);
    }),
    100,
  );
});

// Pinned memory has no device, and so was taken for memory of any Cuda.
test("memory of another Cuda is refused, whatever its kind, as a buffer and as a view", () => {
  using cuda = Cuda.simulate();
  using other = Cuda.simulate();
  const [device, there] = [cuda.device(0), other.device(0)];
  using stream = device.createStream();
  using home = there.createStream();
  using program = device.loadPtx(addPtx);
  const add = program.kernel("add");
  const launch = (memory: KernelArg) => add.launch(stream, 1, 1, [memory, ["uint32", 1], ["uint32", 1]]);
  for (
    const Resource of [DeviceMemoryResource, SynchronousMemoryResource, PinnedMemoryResource, ManagedMemoryResource]
  ) {
    for (const options of [{}, { stream: home }]) {
      using theirs = new Resource(there).allocate(4, options);
      for (const memory of [theirs, StridedMemoryView.fromBuffer(theirs, { shape: [1], dtype: "uint32" })]) {
        assertThrows(
          () => launch(memory),
          TypeError,
          "expected memory of the kernel's own Cuda, got memory of another",
        );
      }
    }
    using ours = new Resource(device).allocate(4, { stream });
    launch(ours);
    stream.synchronize();
  }
});

// The arguments were those of the inner launch, or memory that had been freed.
test("an argument whose reading launches the kernel again, or closes its program or the stream, launches nothing", () => {
  const cuda = Cuda.simulate();
  const device = cuda.device(0);
  for (const what of ["launch", "close the program", "close the stream"] as const) {
    using stream = device.createStream();
    using other = device.createStream();
    using program = device.loadPtx(addPtx);
    const kernel = program.kernel("add");
    using buffer = device.memory.allocate(64, { stream: other });
    buffer.fill(7, { stream: other });
    const plain: KernelArg[] = [buffer, ["uint32", 16], ["uint32", 1]];
    const args: KernelArg[] = [...plain];
    let inner: unknown;
    Object.defineProperty(args, 2, {
      get: () => {
        try {
          if (what === "launch") kernel.launch(other, 1, 1, plain);
          else if (what === "close the program") program.close();
          else stream.close();
        } catch (error) {
          inner = error;
        }
        return plain[2];
      },
    });
    if (what === "launch") {
      kernel.launch(stream, 1, 1, args);
      assert(inner instanceof TypeError && inner.message.includes("while the arguments of a launch of it are read"));
    } else {
      assertThrows(() => kernel.launch(stream, 1, 1, args), TypeError, "closed");
      assertEquals(inner, undefined);
    }
    device.synchronize();
  }
  cuda.close();
});
