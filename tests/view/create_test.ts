/** Arrays in new memory. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  MemoryResource,
  PinnedMemoryResource,
  type Place,
  readNpy,
  StridedMemoryView,
  SynchronousMemoryResource,
  writeNpy,
} from "../../mod.ts";
import { DType, type ElementValue } from "../../src/layout/mod.ts";
import { check, fc } from "../support/property.ts";
import { scratchFolder } from "../support/scratch.ts";

test("zeros and full have the shape, the dtype and the value that were asked for, on the host and on a device", () => {
  using cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  const whole = DType.all().filter(({ isPacked, bits }) => !isPacked && bits >= 8);
  for (const dtype of whole) {
    const zero = dtype.read(new DataView(new ArrayBuffer(16)), 0);
    for (const place of ["host", device] as const) {
      using view = StridedMemoryView.zeros([2, 3], { dtype, device: place });
      assertEquals([view.shape, view.dtype, view.device], [[2, 3], dtype, place === "host" ? null : device]);
      using back = view.to("host");
      for (const value of back.toArray().flat() as ElementValue[]) assertEquals(value, zero, dtype.name);
    }
  }
  assertEquals(StridedMemoryView.full([2], 1.5).dtype.name, "float64");
  using threes = StridedMemoryView.full([2], 3n, { device });
  assertEquals(threes.to("host").toArray(), [3n, 3n]);
  assertEquals(StridedMemoryView.full([], true).item(), true);
  assertEquals(StridedMemoryView.full([1], { re: 1, im: 2 }).toArray(), [{ re: 1, im: 2 }]);
  assertThrows(() => StridedMemoryView.full([2], 300, "uint8"), RangeError, "from 0 to 255");
  using nothing = StridedMemoryView.zeros([0, 3], { device });
  assertEquals(nothing.shape, [0, 3]);
  using stream = device.createStream();
  using view = StridedMemoryView.zeros([4], { device, stream });
  assertEquals(view.stream, stream);
  assertThrows(() => StridedMemoryView.zeros([1], { stream }), TypeError, "expected a device");
  assertThrows(() => StridedMemoryView.zeros([-1]), RangeError);
  assertThrows(() => StridedMemoryView.zeros([1e12]), RangeError, "8000000000000 bytes"); // float64
  // @ts-expect-error -- the compiler knows the names
  assertThrows(() => StridedMemoryView.zeros([1], "float33"), TypeError, "Expected a dtype");
});

test("the array is in the given memory, whatever that held before, and owns what it allocated", () => {
  using cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  using stream = device.createStream();
  using pool = new DeviceMemoryResource(device, {});
  /** A custom memory resource, without home streams, whose memory is full of ones. */
  class Homeless extends MemoryResource {
    override readonly isDeviceAccessible: boolean = true;
    override readonly isHostAccessible: boolean = false;
    override allocate(bytes: number): MemoryBuffer {
      const buffer = pool.allocate(bytes);
      buffer.fill(0xff, { stream: device.defaultStream });
      device.defaultStream.synchronize();
      const free = () => buffer.close();
      return MemoryBuffer.fromAllocation({ ptr: buffer.ptr, size: bytes, device, kind: "device", stream: null, free });
    }
  }
  const resources: [MemoryResource, kind: string, place: Place, home: boolean][] = [
    [new HostMemoryResource(), "host", "host", false],
    [new PinnedMemoryResource(device), "pinned", "host", true],
    [new ManagedMemoryResource(device), "managed", device, true],
    [new SynchronousMemoryResource(device), "device", device, true],
    [pool, "device", device, true],
    [new Homeless(), "device", device, true],
  ];
  using there = StridedMemoryView.arange(3, { device });
  for (const [memory, kind, place, hasHome] of resources) {
    for (const given of [{ memory }, { memory, device: place }]) {
      memory.allocate(48).close(); // freed memory is allocated again, with its old content
      const made = [
        [StridedMemoryView.zeros([2, 3], given), [[0, 0, 0], [0, 0, 0]]],
        [StridedMemoryView.full([3], 1.5, given), [1.5, 1.5, 1.5]],
        [StridedMemoryView.arange(4, { ...given, dtype: "int16" }), [0, 1, 2, 3]],
        [StridedMemoryView.fromArray([[1n], [2n]], given), [[1n], [2n]]],
        [StridedMemoryView.arange(3).copy({ ...given, dtype: "float32" }), [0, 1, 2]],
        [there.copy(given), [0, 1, 2]],
      ] as [StridedMemoryView, unknown[]][];
      for (const [view, expected] of made) {
        assertEquals([view.buffer.kind, view.device], [kind, place === "host" ? null : device]);
        assertEquals(view.stream !== null, hasHome, kind);
        assertEquals(view.to("host").toArray(), expected, kind);
        view.close();
        assertThrows(() => view.ptr, TypeError, "closed");
      }
    }
    if (!hasHome) continue;
    using view = StridedMemoryView.arange(5, { memory, stream });
    if (!(memory instanceof Homeless)) assertEquals(view.stream, stream);
    using back = view.to("host");
    assertEquals(back.toArray(), [0, 1, 2, 3, 4]);
  }
  device.synchronize();
  assertEquals(pool.pool.use.used, 0);
});

test("a resource of one's own that makes no such buffer is refused, by whatever takes memory of it", async () => {
  const closed = new HostMemoryResource().allocate(80);
  closed.close();
  const made: MemoryBuffer[] = [];
  const short = () => {
    const buffer = new HostMemoryResource().allocate(8);
    made.push(buffer);
    return buffer;
  };
  const returned: readonly (readonly [() => unknown, string])[] = [
    [() => undefined, "undefined"],
    [() => ({ ptr: 64n, size: 100 }), "an instance of Object"],
    [() => closed, "a closed one"],
    [short, "one of 8 bytes"],
  ];
  const path = `${scratchFolder()}/ten.npy`;
  await writeNpy(path, StridedMemoryView.arange(10));
  for (const [make, shown] of returned) {
    class Own extends MemoryResource {
      override readonly isDeviceAccessible = false;
      override readonly isHostAccessible = true;
      override allocate(): MemoryBuffer {
        return make() as MemoryBuffer;
      }
    }
    const memory = new Own();
    const calls = [
      () => StridedMemoryView.zeros([10], { memory }),
      () => StridedMemoryView.arange(10).copy({ memory }),
      () => readNpy(path, { memory }),
    ];
    for (const call of calls) {
      await assertRejects(async () => await call(), TypeError, `to return a MemoryBuffer of 80 bytes, got ${shown}`);
    }
  }
  assertEquals(made.map(({ isClosed }) => isClosed), [true, true, true], "nobody else could close them");
});

// It was written to after it had been freed, and the promise resolved to a closed view.
test("a resource's buffer that is closed while a file is read into it stays allocated until that is over", async () => {
  const path = `${scratchFolder()}/much.npy`;
  await writeNpy(path, StridedMemoryView.zeros([1000]));
  const backing = new HostMemoryResource().allocate(8000);
  let freed = 0;
  class Own extends MemoryResource {
    override readonly isDeviceAccessible = false;
    override readonly isHostAccessible = true;
    made: MemoryBuffer | undefined;
    override allocate(size: number): MemoryBuffer {
      const free = () => void freed++;
      return this.made = MemoryBuffer.fromAllocation({ ptr: backing.ptr, size, device: null, stream: null, free });
    }
  }
  const memory = new Own();
  let isEarly = true;
  let freedMeanwhile = 0;
  const onProgress = (done: number, total: number) => {
    if (isEarly || done === total) memory.made?.close();
    freedMeanwhile += freed;
  };
  for (isEarly of [true, false]) {
    freed = 0;
    await assertRejects(() => readNpy(path, { memory, onProgress }), TypeError, "closed MemoryBuffer");
    assertEquals([freedMeanwhile, freed], [0, 1]);
  }
  backing.close();
});

test("memory that is not where the array was wanted is refused, and freed", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const [first, second] = [cuda.device(0), cuda.device(1)];
  using pool = new DeviceMemoryResource(first, {});
  const wrong = (memory: MemoryResource, device: Place) => () => StridedMemoryView.zeros([2], { memory, device });
  assertThrows(wrong(pool, "host"), TypeError, "on the host in device memory");
  assertThrows(wrong(pool, second), TypeError, "expected both to agree. Leave device out");
  assertThrows(wrong(new PinnedMemoryResource(first), first), TypeError, "in pinned memory of the host");
  assertThrows(wrong(new HostMemoryResource(), first), TypeError, "in host memory");
  first.synchronize();
  assertEquals(pool.pool.use.used, 0);
  using stream = second.createStream();
  assertThrows(() => StridedMemoryView.zeros([2], { memory: new HostMemoryResource(), stream }), TypeError, "stream");
  const buffer = new HostMemoryResource().allocate(16);
  const memory = buffer as unknown as MemoryResource;
  assertThrows(() => StridedMemoryView.zeros([2], { memory }), TypeError, "fromBuffer() views a buffer");
  assertThrows(() => StridedMemoryView.zeros([2], { memory: first as never }), TypeError, "expected a MemoryResource");
  assertThrows(() => StridedMemoryView.arange(2).copy({ memory: pool, device: "host" }), TypeError, "both to agree");
});

test("a range has every number from the start to the stop, which it excludes", () => {
  const bound = fc.integer({ min: -50, max: 50 }).map((value) => value / 4);
  const step = fc.integer({ min: -12, max: 12 }).filter((value) => value !== 0).map((value) => value / 4);
  check(
    fc.property(bound, bound, step, (start, stop, by) => {
      const expected: number[] = [];
      for (let value = start; by > 0 ? value < stop : value > stop; value += by) expected.push(value); // exact: quarters
      assertEquals([...StridedMemoryView.arange(start, stop, by).asTypedArray()], expected);
      const quarters = [start, stop, by].map((value) => BigInt(value * 4)) as [bigint, bigint, bigint];
      const whole = StridedMemoryView.arange(...quarters);
      assertEquals([...whole.asTypedArray()], expected.map((value) => BigInt(value * 4)));
      assertEquals(whole.dtype.name, "int64");
    }),
    500,
  );
  assertEquals(StridedMemoryView.arange(4).asTypedArray(), Float64Array.of(0, 1, 2, 3));
  assertEquals(StridedMemoryView.arange(1, 3, "uint8").asTypedArray(), Uint8Array.of(1, 2));
  assertEquals(StridedMemoryView.arange(2n, { dtype: "uint64" }).asTypedArray(), BigUint64Array.of(0n, 1n));
  using cuda = Cuda.simulate();
  using there = StridedMemoryView.arange(0, 1, 0.5, { device: cuda.device(0) });
  assertEquals(there.to("host").toArray(), [0, 0.5]);
  for (const bounds of [[1, 2, 0], [0, NaN], [0, Infinity], [NaN, 1]] as [number, number, number][]) {
    assertThrows(() => StridedMemoryView.arange(...bounds), RangeError, "Expected finite bounds");
  }
  assertThrows(() => StridedMemoryView.arange(1e12), RangeError, "fewer than 2^32 numbers, got 1000000000000");
  // Both had listed the values first, and ran without end.
  assertThrows(() => StridedMemoryView.arange(2n ** 40n), RangeError, "fewer than 2^32 numbers, got 1099511627776");
  assertThrows(() => StridedMemoryView.arange(0n, -(10n ** 400n), -1n), RangeError, "fewer than 2^32 numbers");
  assertThrows(() => StridedMemoryView.arange(0n, 3n, 0n), RangeError, "Expected a step that is not 0");
  assertThrows(() => StridedMemoryView.arange(1, 2n as unknown as number), TypeError, "got both");
  assertThrows(() => StridedMemoryView.arange("5" as unknown as number), TypeError, "Expected arange(stop)");
  assertThrows(() => StridedMemoryView.arange(300, "uint8"), RangeError, "from 0 to 255");
});

test("nested arrays become an array of their shape, and toArray returns them", () => {
  const nested = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 }).chain((shape) =>
    fc.tuple(
      fc.constant(shape),
      shape.toReversed().reduce<fc.Arbitrary<unknown>>(
        (inner, length) => fc.array(inner, { minLength: length, maxLength: length }),
        fc.integer({ min: -128, max: 127 }),
      ),
    )
  );
  check(
    fc.property(nested, fc.constantFrom("int8", "float64", "int32"), ([shape, values], dtype) => {
      const view = StridedMemoryView.fromArray(values as number[], dtype);
      assertEquals(view.shape, shape);
      assertEquals(view.toArray(), values as unknown[]);
      assertEquals(view.dtype.name, dtype);
    }),
    300,
  );
  const dtypes = [[1], [1n], [true], [{ re: 1, im: 2 }], [Float32Array.of(1)], []].map((values) =>
    StridedMemoryView.fromArray(values as number[]).dtype.name
  );
  assertEquals(dtypes, ["float64", "int64", "bool", "complex128", "float32", "float64"]);
  const rows = StridedMemoryView.fromArray([Uint8Array.of(1, 2), Uint8Array.of(3, 4)]);
  assertEquals([rows.shape, rows.dtype.name], [[2, 2], "uint8"]);
  const lanes = StridedMemoryView.fromArray([[1, 2], [3, 4], [5, 6]], "float32x2");
  assertEquals([lanes.shape, lanes.get(2)], [[3], [5, 6]]);
  assertEquals(StridedMemoryView.fromArray([[], []]).shape, [2, 0]);
  using cuda = Cuda.simulate({ check: true });
  using there = StridedMemoryView.fromArray([[1, 2]], { dtype: "float16", device: cuda.device(0) });
  assertEquals(there.to("host").toArray(), [[1, 2]]);
});

test("nested arrays of several lengths, depths or types are refused with the place", () => {
  const ragged = (values: unknown) => () => StridedMemoryView.fromArray(values as number[]);
  assertThrows(ragged([[1, 2], [3]]), RangeError, "Expected an array of 2 at [1], got one of 1");
  assertThrows(ragged([[[1], [2]], [[3], 4]]), RangeError, "Expected an array of 1 at [1][1], got number");
  assertThrows(ragged([1, [2]]), RangeError, "Expected a value at [1], got an array");
  assertThrows(ragged([1, 2n]), TypeError, "Expected a number for float64");
  assertThrows(ragged(["1"]), TypeError, "Expected a number for float64");
  // The type of complex numbers was taken of any object, and the error spoke of complex128.
  for (const [value, kind] of [[null, "null"], [new Date(0), "an instance of Date"]]) {
    const message = `Expected a number, a bigint, a boolean or { re, im }, got ${kind}`;
    assertThrows(ragged([value, 1]), TypeError, message);
    assertThrows(() => StridedMemoryView.full([2], value as never), TypeError, message);
  }
  assertThrows(ragged([{ re: 1 }]), TypeError, "for complex128");
  assertThrows(ragged(5), TypeError, "Expected an array or nested arrays, got 5");
  const self: unknown[] = [];
  self.push(self);
  assertThrows(ragged(self), RangeError, "at most 64 axes");
  // The first one's type was taken, to which the values of the others were rounded.
  const mixed = [[Float32Array.of(1)], [Float64Array.of(0.1)]];
  assertThrows(() => StridedMemoryView.fromArray(mixed), TypeError, "of one type, got float32 and float64");
  assertEquals(StridedMemoryView.fromArray(mixed, "float64").toArray(), [[[1]], [[0.1]]]);
  const bytes = [Uint8Array.of(1), [2], Uint8ClampedArray.of(3)];
  assertEquals(StridedMemoryView.fromArray(bytes).toArray(), [[1], [2], [3]]);
  const lanes = () => StridedMemoryView.fromArray([[1, 2, 3]], "float32x2");
  assertThrows(lanes, RangeError, "Expected arrays of 2 for the elements of float32x2, got 3");
});

test("the compiler knows the dtype of a new array", () => {
  const numbers: StridedMemoryView<"float64"> = StridedMemoryView.fromArray([[1, 2], [3, 4]]);
  const longs: StridedMemoryView<"int64"> = StridedMemoryView.arange(3n);
  const nestedLongs: StridedMemoryView<"int64"> = StridedMemoryView.fromArray([[1n], [2n]]);
  const nestedFlags: StridedMemoryView<"bool"> = StridedMemoryView.fromArray([[[true]], [[false]]]);
  const nestedUnsigned: StridedMemoryView<"uint64"> = StridedMemoryView.fromArray([[1n], [2n]], { dtype: "uint64" });
  const halves: StridedMemoryView<"float16"> = StridedMemoryView.zeros([2], { dtype: "float16" });
  const flags: StridedMemoryView<"bool"> = StridedMemoryView.full([2], true);
  const bytes: StridedMemoryView<"uint8"> = StridedMemoryView.full([2], 1, "uint8");
  const short: StridedMemoryView<"int16"> = StridedMemoryView.arange(0, 4, 2, "int16");
  const none: StridedMemoryView<"float64"> = StridedMemoryView.zeros([2]);
  const sum = [numbers, longs, nestedLongs, nestedFlags, nestedUnsigned, halves, flags, bytes, short, none].map((
    { size },
  ) => size);
  assertEquals(sum, [4, 3, 2, 2, 2, 2, 2, 2, 2, 2]);
  assert(numbers.get(0, 0) + 1 === 2);
});
