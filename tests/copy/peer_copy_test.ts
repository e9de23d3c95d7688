/** Copies between two devices, with any access to each other's memory, against copying byte by byte. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  type CudaDevice,
  DeviceMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import { DType, type DTypeLike, type DTypeName, slice, StridedLayout } from "../../src/layout/mod.ts";
import { intercept } from "../support/intercept.ts";
import { check, fc } from "../support/property.ts";
import { apart, copiedByHand, meeting, pattern, type Placed } from "../support/arrays.ts";

const types: { readonly [bytes: number]: string } = { 1: "uint8", 3: "uint8x3", 4: "uint32", 16: "complex128" };

const shapes: fc.Arbitrary<number[]> = fc.oneof(
  { weight: 3, arbitrary: fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.tuple(fc.integer({ min: 8, max: 40 }), fc.integer({ min: 8, max: 40 })) },
  { weight: 1, arbitrary: fc.tuple(fc.integer({ min: 2, max: 4 }), fc.constant(600)) },
);

interface Case {
  readonly itemsize: number;
  readonly source: Placed;
  readonly destination: Placed;
  /** Whether the other side's device may use each memory; undefined if the user has not said. */
  readonly access: readonly [boolean | undefined, boolean | undefined];
  /** Device ordinals: where the copy is enqueued, and the home streams of both sides. */
  readonly stream: number;
  readonly homes: readonly [number, number];
  readonly seed: number;
}

const ordinal = fc.nat(2);
const word = fc.constantFrom(true, false, undefined);
const cases: fc.Arbitrary<Case> = fc.tuple(shapes, fc.constantFrom(1, 3, 4, 16)).chain(([shape, itemsize]) =>
  fc.record({
    itemsize: fc.constant(itemsize),
    source: fc.oneof(
      { weight: 4, arbitrary: apart(shape, itemsize) },
      { weight: 1, arbitrary: meeting(shape, itemsize) },
    ),
    destination: apart(shape, itemsize),
    access: fc.tuple(word, word),
    stream: ordinal,
    homes: fc.tuple(ordinal, ordinal),
    seed: fc.nat(),
  })
);

function view(buffer: MemoryBuffer, { layout, offset }: Placed, dtype: DTypeLike): StridedMemoryView {
  const { shape, strides } = layout;
  const start = layout.volume === 0 ? 0 : offset + layout.sliceOffsetInBytes;
  return StridedMemoryView.fromBuffer(buffer, { shape, strides, dtype, offset: start });
}

function device(cuda: Cuda, ordinal: number): CudaDevice {
  return cuda.device(ordinal);
}

test("a copy between two devices moves each element to its place, with access to each other's memory or without", () => {
  check(
    fc.property(cases, ({ itemsize, source, destination, access, stream: where, homes, seed }) => {
      const reports: string[] = [];
      const cuda = Cuda.simulate({ devices: 3, seed, check: { onReport: ({ message }) => reports.push(message) } });
      {
        using one = device(cuda, homes[0]).createStream();
        using other = device(cuda, homes[1]).createStream();
        using stream = device(cuda, where).createStream();
        const pools = [new DeviceMemoryResource(device(cuda, 0)), new DeviceMemoryResource(device(cuda, 1))];
        pools.forEach((pool, i) => {
          if (access[i] !== undefined) pool.peerAccessibleBy = access[i] ? [1 - i] : [];
        });
        const [before, after] = [pattern(source.size, seed), pattern(destination.size, seed + 1)];
        using from = new DeviceMemoryResource(device(cuda, 0)).allocate(source.size, { stream: one });
        using to = new DeviceMemoryResource(device(cuda, 1)).allocate(destination.size, { stream: other });
        const pinned = new PinnedMemoryResource(device(cuda, 0));
        const bytesOf = (buffer: MemoryBuffer) =>
          StridedMemoryView.fromBuffer(buffer, { shape: [buffer.size], dtype: "uint8" });
        // The host does not wait: later work has to be ordered after it.
        const put = (buffer: MemoryBuffer, bytes: Uint8Array) => {
          const staging = pinned.allocate(bytes.length);
          staging.bytes().set(bytes);
          const order = buffer.device?.createStream() ?? stream;
          bytesOf(buffer).copyFrom(bytesOf(staging), { stream: order });
          return { staging, order };
        };
        const puts = [put(from, before), put(to, after)];
        const dtype = types[itemsize] ?? "";
        const [here, there] = [view(from, source, DType.from(dtype)), view(to, destination, DType.from(dtype))];
        const said = there.explainCopyFrom(here, { stream });
        const untouched = pools.map((pool) => pool.peerAccessibleBy.size);
        assertEquals(
          untouched,
          access.map((one) => one === true ? 1 : 0),
          "explaining a copy takes no access",
        );
        there.copyFrom(here, { stream });
        const granted = pools.map((pool) => pool.peerAccessibleBy.size === 1);
        access.forEach((one, i) => assert(one === undefined || one === granted[i], "the user's own setting is kept"));
        // The other side's device should use the dense side.
        const best = here.layout.isDense && !there.layout.isDense ? 0 : 1;
        const decides = access[best] === false ? 1 - best : best;
        const expected = access.map((one, i) => one ?? (i === decides && (here.layout.volume > 0)));
        assertEquals(granted, expected, "the best access that is allowed is granted, and no more");
        assertEquals(there.explainCopyFrom(here, { stream }), said, "the copy was done as explained");
        using result = pinned.allocate(destination.size);
        using reader = device(cuda, 1).createStream();
        bytesOf(result).copyFrom(bytesOf(to), { stream: reader });
        reader.synchronize();
        assertEquals(
          result.bytes(),
          copiedByHand(source, before, destination, after),
          there.explainCopyFrom(here, { stream }),
        );
        for (const { staging, order } of puts) [staging, order].forEach((owned) => owned.close());
      }
      cuda.close();
      assertEquals(reports, []);
    }),
    60,
  );
});

/** A view on each of two devices, each in one pool. */
function two(cuda: Cuda, shape: readonly number[], dtypes: readonly [DTypeName, DTypeName] = ["float32", "float32"]) {
  const [one, other] = [cuda.device(0), cuda.device(1)];
  const made = [one, other].map((device, i) => {
    const dtype = dtypes[i] ?? "float32";
    const stream = device.createStream();
    const buffer = new DeviceMemoryResource(device).allocate(1 << 16, { stream });
    return { view: StridedMemoryView.fromBuffer(buffer, { shape, dtype }), buffer, stream };
  });
  const [from, to] = made;
  if (from === undefined || to === undefined) throw new Error("two devices");
  const close = () => made.forEach(({ buffer, stream }) => [buffer, stream].forEach((owned) => owned.close()));
  return { from: from.view, to: to.view, stream: to.stream, [Symbol.dispose]: close };
}

/** Denies every device access to the pools of the others. */
function withhold(cuda: Cuda): void {
  for (const device of cuda.devices) new DeviceMemoryResource(device).peerAccessibleBy.clear();
}

test("copies between two devices are explained: sent as is, gathered and spread, or by one kernel with access", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  withhold(cuda);
  using pair = two(cuda, [64, 32]);
  const { from, to } = pair;
  assertEquals(to.explainCopyFrom(from), "one copy of 8192 bytes by the driver");
  const wide = StridedLayout.dense([8, 1024], 4).sliced("...", slice(0, 1000));
  const rows = [from.view({ layout: wide }), to.view({ layout: StridedLayout.dense([8, 1000], 4) })] as const;
  assertEquals(rows[1].explainCopyFrom(rows[0]), "8 rows of 4000 bytes by the driver");
  rows[1].copyFrom(rows[0]); // which the driver refuses without access, unless both devices are named
  const turned = [from.permuted([1, 0]), to.reshaped([32, 64])] as const;
  assertEquals(
    turned[1].explainCopyFrom(turned[0]),
    "sent to the other device in one piece, and spread there by a kernel",
  );
  const every = from.view({ layout: StridedLayout.dense([64, 64], 4).sliced("...", slice(null, null, 2)) });
  assertEquals(to.explainCopyFrom(every), "gathered by a kernel, sent to the other device in one piece");
  new DeviceMemoryResource(cuda.device(1)).peerAccessibleBy = [0];
  assertEquals(
    to.explainCopyFrom(every),
    "a kernel over 2048 words of 4 bytes as 2048, in the order of the destination, on device 0",
  );
  new DeviceMemoryResource(cuda.device(1)).peerAccessibleBy = [];
  new DeviceMemoryResource(cuda.device(0)).peerAccessibleBy = [1];
  assertEquals(
    to.explainCopyFrom(every),
    "a kernel over 2048 words of 4 bytes as 2048, in the order of the destination, on device 1",
  );
});

test("between devices that can use each other's memory the kernel runs where the gaps are", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  using pair = two(cuda, [64, 32]);
  const { from, to } = pair;
  new DeviceMemoryResource(cuda.device(0)).peerAccessibleBy = [1];
  new DeviceMemoryResource(cuda.device(1)).peerAccessibleBy = [0];
  const stepped = StridedLayout.dense([64, 64], 4).sliced("...", slice(null, null, 2));
  const kernel = "a kernel over 2048 words of 4 bytes as 2048, in the order of the destination, on device";
  assertEquals(to.explainCopyFrom(from.view({ layout: stepped })), `${kernel} 0`);
  assertEquals(to.view({ layout: stepped }).explainCopyFrom(from), `${kernel} 1`);
});

test("access is taken for the device on whose side the gaps are, as its kernel copies fastest", () => {
  for (const gapsAt of [0, 1]) {
    using cuda = Cuda.simulate({ devices: 2 });
    using pair = two(cuda, [64, 32]);
    const stepped = StridedLayout.dense([64, 64], 4).sliced("...", slice(null, null, 2));
    const [from, to] = gapsAt === 0 ? [pair.from.view({ layout: stepped }), pair.to] : [
      pair.from,
      pair.to.view({ layout: stepped }),
    ];
    to.copyFrom(from);
    const granted = cuda.devices.map(({ memory }) => [...memory.peerAccessibleBy].map(({ ordinal }) => ordinal));
    assertEquals(granted, gapsAt === 0 ? [[], [0]] : [[1], []]);
    for (const device of cuda.devices) device.synchronize();
  }
});

test("elements are converted on the way between two devices, before they are sent if that makes them smaller", () => {
  const cases = [["float64", "float32", 1], ["uint8", "float64", 1], ["uint8", "float64", 2]] as const;
  for (const [source, target, step] of cases) {
    const dtypes = [source, target] as const;
    using cuda = Cuda.simulate({ devices: 2 });
    withhold(cuda);
    using pair = two(cuda, [40, 30 * step], dtypes);
    const { stream } = pair;
    const from = pair.from.sliced("...", slice(null, null, step));
    const to = pair.to.sliced("...", slice(0, 30)).view({
      layout: StridedLayout.dense([40, 30], pair.to.dtype.itemsize),
    });
    using host = new PinnedMemoryResource(cuda.device(0)).allocate(1 << 16);
    const onHost = (dtype: DTypeName) => StridedMemoryView.fromBuffer(host, { shape: [40, 30], dtype });
    const numbers = Float64Array.from({ length: 1200 }, (_, i) => i % 250);
    onHost(dtypes[0]).copyFrom(StridedMemoryView.fromTypedArray(numbers, { shape: [40, 30] }), { convert: true });
    from.copyFrom(onHost(dtypes[0]));
    const explained = to.explainCopyFrom(from, { convert: true });
    assertEquals(
      explained,
      source === "float64"
        ? "gathered by a kernel, sent to the other device in one piece"
        : `${
          step === 2 ? "gathered by a kernel, " : ""
        }sent to the other device in one piece, and spread there by a kernel`,
    );
    to.copyFrom(from, { convert: true });
    onHost(dtypes[1]).copyFrom(to);
    cuda.devices.forEach((device) => device.synchronize());
    stream.synchronize();
    const result = new Float64Array(1200);
    StridedMemoryView.fromTypedArray(result, { shape: [40, 30] }).copyFrom(onHost(dtypes[1]), { convert: true });
    assertEquals(result, numbers);
  }
});

// Found by random programs of producers and consumers.
test("memory of a closed pool is copied to another device as before", () => {
  for (const hasAccess of [true, false]) copyFromClosedPool(hasAccess);
});

function copyFromClosedPool(hasAccess: boolean): void {
  using cuda = Cuda.simulate({ devices: 2 });
  withhold(cuda); // so that the closed pool is the only way
  const [one, other] = [cuda.device(0), cuda.device(1)];
  using pool = new DeviceMemoryResource(one, {});
  if (hasAccess) pool.peerAccessibleBy = [other];
  using source = pool.allocate(4, { stream: one.defaultStream });
  using target = other.memory.allocate(4, { stream: other.defaultStream });
  using result = new PinnedMemoryResource(other).allocate(4);
  source.fill(7, { stream: one.defaultStream });
  pool.close();
  const [from, to] = [source, target].map((buffer) =>
    StridedMemoryView.fromBuffer(buffer, { shape: [2, 2], strides: [1, 2], dtype: "uint8" })
  );
  if (from !== undefined) to?.copyFrom(from);
  target.copyTo(result, { stream: other.defaultStream });
  other.synchronize();
  assertEquals([...result.bytes()], [7, 7, 7, 7]);
}

/** The calls that a driver receives for the peers of pools and contexts. */
function accessCalls(cuda: Cuda): { readonly calls: string[]; refuse: boolean } {
  const { driver } = cuda.device(0);
  const seen = { calls: [] as string[], refuse: false };
  intercept(driver, "pool", (own) => ({
    cuMemPoolSetAccess: (...args) => {
      seen.calls.push("cuMemPoolSetAccess");
      return seen.refuse ? CUresult.CUDA_ERROR_OUT_OF_MEMORY : own.cuMemPoolSetAccess(...args);
    },
  }));
  intercept(driver, "context", (own) => ({
    cuCtxEnablePeerAccess: (...args) => {
      seen.calls.push("cuCtxEnablePeerAccess");
      return seen.refuse ? CUresult.CUDA_ERROR_TOO_MANY_PEERS : own.cuCtxEnablePeerAccess(...args);
    },
  }));
  return seen;
}

// Between two H200s: 38 GB/s without access, 390 with it, where torch had enabled it on its own.
// With access in one direction only, one of two devices moves the bytes of both: among four H200s that send to each
// other, 560 GB/s instead of 1500.
test("access for copies between two devices is taken once for each direction, whatever memory and whatever copies", () => {
  const sources = ["pool", "ordinary"] as const;
  const expected: { readonly [kinds: string]: string[] } = {
    "pool to pool": ["cuMemPoolSetAccess", "cuMemPoolSetAccess"],
    // Access that also serves kernels serves both directions: there is one pool.
    "pool to ordinary": ["cuMemPoolSetAccess"],
    "ordinary to pool": ["cuMemPoolSetAccess"],
    // Copies with gaps on both sides go through memory of the device's pool: no kernel reaches across.
    "ordinary to ordinary": ["cuCtxEnablePeerAccess", "cuCtxEnablePeerAccess", "cuMemPoolSetAccess"],
  };
  for (const [from, to] of sources.flatMap((one) => sources.map((other) => [one, other] as const))) {
    using cuda = Cuda.simulate({ devices: 2 });
    const seen = accessCalls(cuda);
    const [source, destination] = [from, to].map((kind, i) => {
      const device = cuda.device(i);
      const stream = device.defaultStream;
      return (kind === "pool" ? device.memory : new SynchronousMemoryResource(device)).allocate(4096, { stream });
    });
    if (source === undefined || destination === undefined) throw new Error("two buffers");
    const over = (buffer: MemoryBuffer) => StridedMemoryView.fromBuffer(buffer, { shape: [64, 64], dtype: "uint8" });
    for (let i = 0; i < 3; i++) {
      destination.copyFrom(source, { stream: cuda.device(i % 2).defaultStream });
      over(destination).copyFrom(over(source));
      over(destination).sliced(slice(), slice(0, 7)).copyFrom(over(source).sliced(slice(), slice(1, 8)));
      over(source).copyFrom(over(destination));
    }
    assertEquals(seen.calls.toSorted(), expected[`${from} to ${to}`], `${from} to ${to}`);
    for (const device of cuda.devices) device.synchronize();
    [source, destination].forEach((buffer) => buffer.close());
  }
});

test("where access is refused or impossible, copies between two devices go by way of the host", () => {
  for (const kind of ["pool", "ordinary"] as const) {
    for (const how of ["refused", "unreachable", "captured"] as const) {
      using cuda = Cuda.simulate({ devices: 2, ...(how === "unreachable" ? { canAccessPeer: () => false } : {}) });
      const seen = accessCalls(cuda);
      seen.refuse = how === "refused";
      const [one, other] = [cuda.device(0), cuda.device(1)];
      const [source, destination] = [one, other].map((device) => {
        const resource = kind === "pool" ? device.memory : new SynchronousMemoryResource(device);
        return resource.allocate(64, { stream: device.defaultStream });
      });
      if (source === undefined || destination === undefined) throw new Error("two buffers");
      source.fill(7, { stream: one.defaultStream });
      one.synchronize();
      using stream = other.createStream();
      const copy = () => destination.copyFrom(source, { stream });
      if (how === "captured") {
        using graph = stream.capture(copy);
        using exec = graph.instantiate();
        exec.launch(stream);
      } else for (let i = 0; i < 3; i++) copy();
      using result = new PinnedMemoryResource(other).allocate(64);
      destination.copyTo(result, { stream });
      stream.synchronize();
      assertEquals([...new Set(result.bytes())], [7], `${kind}, ${how}`);
      assert(seen.calls.length <= (how === "refused" ? 2 : 0), `${kind}, ${how}: requested ${seen.calls.length} times`);
      [source, destination].forEach((buffer) => buffer.close());
    }
  }
});

test("a pool whose access was narrowed warns once what it costs, and how to get it back", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  withhold(cuda);
  const [one, other] = [cuda.device(0), cuda.device(1)];
  using source = one.memory.allocate(2 ** 20, { stream: one.defaultStream });
  using destination = other.memory.allocate(2 ** 20, { stream: other.defaultStream });
  const said: unknown[] = [];
  const { warn } = console;
  console.warn = (text: unknown) => said.push(text);
  try {
    for (let i = 0; i < 3; i++) destination.copyFrom(source, { stream: other.defaultStream });
    assertEquals(said.length, 1);
    assertMatch(String(said[0]), /peerAccessibleBy\.add\(0\)/);
    other.memory.peerAccessibleBy.add(0);
    destination.copyFrom(source, { stream: other.defaultStream });
    assertEquals(said.length, 1);
  } finally {
    console.warn = warn;
  }
  for (const device of cuda.devices) device.synchronize();
});
