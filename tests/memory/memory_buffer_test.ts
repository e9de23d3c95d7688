/**
 * When a buffer is freed: random programs of pins and closes against a model that only counts.
 */
import { assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CudaStream } from "../../src/device/stream.ts";
import { libc } from "../../src/ffi/libc.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, CudaError } from "../../mod.ts";
import { DeviceMemoryResource } from "../../src/memory/device_memory_resource.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { recordingDevice } from "../support/recording_driver.ts";
import { collectGarbage } from "../support/collect.ts";
import { check, fc } from "../support/property.ts";

/** A buffer and its state in the model. */
interface Modelled {
  readonly buffer: MemoryBuffer;
  readonly size: number;
  /** What its bytes must be. */
  readonly expected: Uint8Array;
  readonly pins: Disposable[];
  readonly owner: object | undefined;
  closed: boolean;
  /** How often `free` was called. */
  frees: number;
}

type Operation =
  | { readonly kind: "allocate"; readonly size: number; readonly owned: boolean }
  | { readonly kind: "write"; readonly at: number; readonly value: number }
  | { readonly kind: "copy"; readonly at: number; readonly from: number }
  | { readonly kind: "pin" | "unpin" | "close" | "use"; readonly at: number };

const index = fc.nat(11);
const operations: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("allocate" as const),
      size: fc.constantFrom(0, 1, 7, 64, 64, 100),
      owned: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("write" as const), at: index, value: fc.nat(255) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("copy" as const), at: index, from: index }) },
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constantFrom("pin", "pin", "unpin", "unpin", "close", "use"), at: index }),
  },
);

function allocate(size: number, owned: boolean): Modelled {
  const owner = owned ? {} : undefined;
  const ptr = size === 0 ? 0n : libc().loading.calloc(1n, BigInt(size));
  const one: Modelled = {
    buffer: MemoryBuffer.fromAllocation({
      ptr,
      size,
      device: null,
      stream: null,
      ...(owner === undefined ? {} : { owner }),
      free: (address) => {
        assertEquals(address, ptr);
        one.frees++;
        libc().loading.free(address);
      },
    }),
    size,
    expected: new Uint8Array(size),
    pins: [],
    owner,
    closed: false,
    frees: 0,
  };
  return one;
}

/** Fails unless every use of the buffer gives what the model says. */
function assertUse({ buffer, closed, expected, size }: Modelled): void {
  assertEquals(buffer.size, size);
  if (!closed) {
    assertEquals(buffer.ptr === 0n, size === 0);
    assertEquals(new Uint8Array(buffer.bytes()), new Uint8Array(expected));
    return;
  }
  using other = new HostMemoryResource().allocate(size);
  const use = [
    () => buffer.ptr,
    () => buffer.bytes(),
    () => buffer.pinned(),
    () => buffer.copyFrom(other),
    () => buffer.copyTo(other),
  ];
  for (const one of use) assertThrows(one, TypeError, ` a closed MemoryBuffer of ${size} bytes`);
}

/** Invariants that hold at any time. */
function assertInvariants({ buffer, closed, pins, owner, frees }: Modelled): void {
  assertEquals(buffer.isClosed, closed);
  assertEquals(frees, closed && pins.length === 0 ? 1 : 0, "freed once, and only when closed and not pinned");
  assertStrictEquals(buffer.owner, frees === 0 ? owner : undefined);
}

function run(buffers: Modelled[], operation: Operation): void {
  if (operation.kind === "allocate") {
    buffers.push(allocate(operation.size, operation.owned));
    return;
  }
  const one = buffers[operation.at % buffers.length];
  if (one === undefined) return;
  switch (operation.kind) {
    case "write":
      if (one.closed) return;
      one.buffer.bytes().fill(operation.value);
      one.expected.fill(operation.value);
      return;
    case "copy": {
      const from = buffers[operation.from % buffers.length];
      if (from === undefined || one.closed || from.closed) return;
      if (from.size !== one.size) {
        assertThrows(
          () => one.buffer.copyFrom(from.buffer),
          RangeError,
          `${from.size} bytes into a buffer of ${one.size}`,
        );
        return;
      }
      one.buffer.copyFrom(from.buffer);
      one.expected.set(from.expected);
      return;
    }
    case "pin":
      if (!one.closed) one.pins.push(one.buffer.pinned());
      return;
    case "unpin": {
      const pin = one.pins.shift();
      pin?.[Symbol.dispose]();
      pin?.[Symbol.dispose](); // an unpin counts once
      return;
    }
    case "close": {
      const bytes = one.closed ? undefined : one.buffer.bytes();
      one.buffer.close();
      one.closed = true;
      assertEquals(bytes?.length ?? 0, 0, "an array of the bytes must not outlive them");
      return;
    }
    case "use":
      assertUse(one);
  }
}

test("a buffer is freed once, when it is closed and the last pin is gone, and refuses every use after its end", () => {
  check(
    fc.property(fc.array(operations, { minLength: 5, maxLength: 60, size: "max" }), (program) => {
      const buffers: Modelled[] = [];
      for (const operation of program) {
        run(buffers, operation);
        buffers.forEach(assertInvariants);
      }
      for (const one of buffers) {
        one.buffer[Symbol.dispose]();
        one.closed = true;
        assertInvariants(one);
        for (const pin of one.pins.splice(0)) pin[Symbol.dispose]();
        assertInvariants(one);
        assertUse(one);
      }
    }),
    500,
  );
});

test("pinned memory keeps its bytes after the buffer is closed", () => {
  const one = allocate(64, false);
  const { ptr } = one.buffer;
  one.buffer.bytes().fill(7);
  const pin = one.buffer.pinned();
  one.buffer.close();
  using still = MemoryBuffer.fromPointer(ptr, 64);
  assertEquals(new Set(still.bytes()), new Set([7]));
  pin[Symbol.dispose]();
  assertEquals(one.frees, 1);
});

test("bytes that were transferred are returned anew, and the buffer is closed like any other", () => {
  // Posting the array to a worker transfers it: closing the buffer then failed, and its memory was never freed.
  let freed = 0;
  const ptr = libc().loading.calloc(1n, 8n);
  const free = (at: bigint) => {
    freed++;
    libc().loading.free(at);
  };
  const buffer = MemoryBuffer.fromAllocation({ ptr, size: 8, device: null, stream: null, free });
  buffer.bytes().fill(7);
  const taken = structuredClone(buffer.bytes(), { transfer: [buffer.bytes().buffer] });
  assertEquals([taken.length, taken[0]], [8, 7]);
  const bytes = buffer.bytes();
  assertEquals([...bytes], [7, 7, 7, 7, 7, 7, 7, 7]);
  structuredClone(bytes, { transfer: [bytes.buffer] });
  buffer.close();
  assertEquals(freed, 1);
});

test("memory is freed on the home stream, which close can change", () => {
  const { device } = recordingDevice();
  const [home, other] = [CudaStream.fromHandle(device, 5n), CudaStream.fromHandle(device, 6n)];
  for (const closing of [undefined, other]) {
    const streams: (CudaStream | null)[] = [];
    const buffer = MemoryBuffer.fromAllocation({
      ptr: 64n,
      size: 8,
      device,
      stream: home,
      free: (_, stream) => streams.push(stream),
    });
    assertStrictEquals(buffer.stream, home);
    buffer.close(closing);
    buffer.close(home);
    assertEquals(streams.length, 1);
    assertStrictEquals(streams[0], closing ?? home);
  }
});

test("a buffer over foreign memory retains its owner until the last pin is gone, and frees nothing", () => {
  const array = new Uint8Array(new ArrayBuffer(32)).fill(3);
  const owner = { array };
  using memory = new HostMemoryResource().allocate(32);
  const buffer = MemoryBuffer.fromPointer(memory.ptr, 32, { owner });
  assertStrictEquals(buffer.owner, owner);
  assertStrictEquals(buffer.device, null);
  assertStrictEquals(buffer.stream, null);
  const pin = buffer.pinned();
  buffer.close();
  assertStrictEquals(buffer.owner, owner);
  pin[Symbol.dispose]();
  assertStrictEquals(buffer.owner, undefined);
  memory.bytes().fill(1); // still allocated
});

test("an invalid address or size is refused", () => {
  for (const size of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
    assertThrows(() => MemoryBuffer.fromPointer(64n, size), RangeError, `Cannot make a buffer of ${size} bytes`);
  }
  for (const ptr of [-1n, 1n << 64n]) {
    assertThrows(() => MemoryBuffer.fromPointer(ptr, 1), RangeError, "expected a 64-bit address");
  }
  assertThrows(() => MemoryBuffer.fromPointer(0n, 1), RangeError, "Cannot make a buffer of 1 bytes at address 0");
  assertThrows(() => MemoryBuffer.fromPointer((1n << 64n) - 8n, 9), RangeError, "expected a 64-bit address");
  assertEquals(MemoryBuffer.fromPointer(0n, 0).bytes().length, 0);
  assertEquals(MemoryBuffer.fromPointer((1n << 64n) - 8n, 8).size, 8);
  // A part beyond the end used to be accepted.
  for (
    const [offset, size] of [[0, 9], [8, 1], [-1, 4], [4, -1], [NaN, 1], [0, NaN], [Infinity, 0], [2 ** 53, 1]] as const
  ) {
    assertThrows(() => MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8), offset, size), RangeError, "within 8 bytes");
  }
  assertEquals(MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8), 8, 0).ptr, 0n);
  assertEquals(MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8)).size, 8);
  assertEquals(MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8), 5).size, 3);
  for (const other of [undefined, null, 8, new Uint8Array(8), new SharedArrayBuffer(8)] as unknown[]) {
    const make = () => MemoryBuffer.fromArrayBuffer(other as ArrayBuffer);
    assertThrows(make, TypeError, "expected an ArrayBuffer, got");
  }
});

test("a copy between host buffers is done on return, whatever the bytes and the size", () => {
  const resource = new HostMemoryResource();
  check(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, isTo) => {
      using source = resource.allocate(bytes.length);
      using destination = resource.allocate(bytes.length);
      source.bytes().set(bytes);
      if (isTo) source.copyTo(destination);
      else destination.copyFrom(source);
      assertEquals([...destination.bytes()], [...bytes]);
    }),
    100,
  );
});

test("a copy between overlapping buffers moves the bytes that were there before it", () => {
  using memory = new HostMemoryResource().allocate(64);
  memory.bytes().set(Array.from({ length: 64 }, (_, i) => i));
  const first = MemoryBuffer.fromPointer(memory.ptr, 48);
  MemoryBuffer.fromPointer(memory.ptr + 16n, 48).copyFrom(first);
  assertEquals([...memory.bytes().subarray(16)], Array.from({ length: 48 }, (_, i) => i));
});

test("device memory is copied on the stream that is given, and not without one", () => {
  const { device, log } = recordingDevice();
  using host = new HostMemoryResource().allocate(16);
  using stand = new HostMemoryResource().allocate(16); // the recording driver takes it for device memory
  const [hostPtr, devicePtr] = [host.ptr, stand.ptr];
  const onDevice = MemoryBuffer.fromPointer(devicePtr, 16, { device });
  const twin = MemoryBuffer.fromPointer(devicePtr, 16, { device });
  const stream = CudaStream.adopt(device, 9n, true, device.retained());
  assertThrows(() => onDevice.copyFrom(host), TypeError, "pass { stream }");
  assertThrows(() => onDevice.copyTo(host), TypeError, "pass { stream }");
  assertThrows(() => onDevice.bytes(), TypeError, "copyTo()");
  assertEquals(log, []);
  onDevice.copyFrom(host, { stream });
  onDevice.copyTo(host, { stream });
  onDevice.copyFrom(twin, { stream });
  assertEquals(log, [
    `cuMemcpyHtoDAsync_v2(${devicePtr}, ${hostPtr}, 16, 9)`,
    `cuMemcpyDtoHAsync_v2(${hostPtr}, ${devicePtr}, 16, 9)`,
    `cuMemcpyDtoDAsync_v2(${devicePtr}, ${devicePtr}, 16, 9)`,
  ]);
});

test("bytes are copied from one device to another, whether or not these can access each other's memory", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const [from, to] = [cuda.device(0), cuda.device(1)];
  for (const place of [from, to]) {
    using stream = place.createStream();
    using source = new DeviceMemoryResource(from).allocate(8, { stream });
    using destination = new DeviceMemoryResource(to).allocate(8, { stream });
    using home = from.createStream();
    source.setHomeStream(home);
    source.fill(6, { stream: home });
    stream.wait(home);
    destination.copyFrom(source, { stream });
    using host = new HostMemoryResource().allocate(8);
    using reader = to.createStream();
    reader.wait(stream);
    host.copyFrom(destination, { stream: reader });
    reader.synchronize();
    assertEquals([...host.bytes()], Array(8).fill(6));
  }
});

// Found by random failures: the new home was never released, and the former one twice.
test("a former home that the driver refuses to destroy is an error, and the buffer has the new one", () => {
  const cuda = Cuda.simulate();
  const simulated = SimulatedDriver.of(cuda.driver);
  const device = cuda.device(0);
  const [former, next] = [device.createStream(), device.createStream()];
  const buffer = device.memory.allocate(4, { stream: former });
  former.close();
  simulated?.failNth("cuStreamDestroy_v2", 1, 999);
  const error = assertThrows(() => buffer.setHomeStream(next), CudaError, "cuStreamDestroy_v2");
  assertEquals([error.code, buffer.stream], [999, next]);
  buffer.close();
  next.close();
  assertEquals(simulated?.live.streams, 1); // the one that could not be destroyed
  cuda.close();
});

// The address was taken first: what was copied came from memory that had been freed, or went there.
test("a buffer that a getter of the options closes is neither copied nor copied into", () => {
  const host = new HostMemoryResource();
  const [mine, other] = [host.allocate(8), host.allocate(8)];
  const closing = (buffer: MemoryBuffer) => ({
    get stream(): CudaStream {
      buffer.close();
      return undefined as unknown as CudaStream; // as if there were none
    },
  });
  assertThrows(() => mine.copyFrom(other, closing(mine)), TypeError, "Cannot copy into a closed MemoryBuffer");
  const source = host.allocate(8);
  assertThrows(() => other.copyFrom(source, closing(source)), TypeError, "Cannot copy from a closed MemoryBuffer");
  assertThrows(
    () => other.copyTo(new Uint8Array(8), closing(other)),
    TypeError,
    "Cannot copy from a closed MemoryBuffer",
  );
});

test("an array that a getter of the options transfers is neither copied nor copied into", () => {
  const buffer = new HostMemoryResource().allocate(8);
  const transferring = (array: Uint8Array<ArrayBuffer>) => ({
    get stream(): CudaStream {
      array.buffer.transfer(0);
      return undefined as unknown as CudaStream; // as if there were none
    },
  });
  const [source, destination] = [new Uint8Array(8), new Uint8Array(8)];
  assertThrows(() => buffer.copyFrom(source, transferring(source)), TypeError, "copy from 8 bytes of an ArrayBuffer");
  assertThrows(
    () => buffer.copyTo(destination, transferring(destination)),
    TypeError,
    "copy into 8 bytes of an ArrayBuffer",
  );
});

test("a buffer over foreign memory that is dropped releases the home that it was given", async () => {
  const cuda = Cuda.simulate();
  const simulated = SimulatedDriver.of(cuda.driver);
  const device = cuda.device(0);
  const streams = Array.from({ length: 20 }, () => device.createStream());
  streams.forEach((stream, i) => {
    const buffer = MemoryBuffer.fromPointer(64n, 8, { device });
    for (const home of [stream, streams[i - 1] ?? stream, stream]) buffer.setHomeStream(home);
  });
  for (const one of [...streams, cuda]) one.close();
  assertEquals(simulated?.live.streams, 20);
  for (let round = 0; round < 20 && simulated?.live.streams !== 0; round++) await collectGarbage();
  assertEquals([simulated?.live.streams, simulated?.live.contexts], [0, 0]);
});
