/** Arrays arrive unchanged: element type, shape and elements, in the requested kind of memory. */
import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import {
  Cuda,
  HostMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
  Ucx,
} from "../../mod.ts";
import { DType } from "../../src/layout/mod.ts";
import { readArrayHeader, writeArrayHeader } from "../../src/ucx/array_header.ts";
import { apart, meeting, pattern, positionsOf } from "../support/arrays.ts";
import { laidOut } from "../support/laid_out.ts";
import { check, fc } from "../support/property.ts";

const dtypes = ["bool", "int8", "uint16", "float16", "bfloat16", "float32", "int64", "float64", "complex128"];
const shapes = fc.oneof(
  { weight: 6, arbitrary: fc.array(fc.nat(4), { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom([3000], [100, 130]) }, // beyond what UCX sends eagerly
);
const arrays = fc.tuple(shapes, fc.constantFrom(...dtypes)).chain(([shape, name]) => {
  const { itemsize } = DType.from(name);
  const isLarge = shape.some((extent) => extent > 4);
  const placed = isLarge ? apart(shape, itemsize) : fc.oneof(apart(shape, itemsize), meeting(shape, itemsize));
  return fc.record({ name: fc.constant(name), placed, seed: fc.nat() });
});

/** Two workers with an endpoint from one to the other, and optionally back. */
async function pair(config: Record<string, string> = {}) {
  const ucx = Ucx.open({ config });
  const [sender, receiver] = [ucx.createWorker(), ucx.createWorker()];
  const endpoint = await sender.connect(receiver.address);
  const close = async () => {
    await Promise.all([sender.close(), receiver.close()]);
    ucx.close();
  };
  return { endpoint, sender, receiver, [Symbol.asyncDispose]: close };
}

test("an array of any type and layout arrives with its type, its shape, and its elements in C order", async () => {
  await using ends = await pair();
  await check(
    fc.asyncProperty(fc.array(arrays, { minLength: 1, maxLength: 3 }), async (several) => {
      const sent = several.map(({ name, placed, seed }) => {
        const buffer = new HostMemoryResource().allocate(placed.size);
        buffer.bytes().set(pattern(placed.size, seed));
        return laidOut(buffer, { layout: placed.layout, offset: placed.offset, dtype: name });
      });
      const sends = sent.map((view) => ends.endpoint.sendArray(view));
      for (const [i, { name, placed, seed }] of several.entries()) {
        using array = await ends.receiver.recvArray();
        const bytes = pattern(placed.size, seed);
        const { itemsize, shape } = placed.layout;
        const expected = positionsOf(placed).flatMap((at) => [...bytes.subarray(at, at + itemsize)]);
        assertEquals([array.dtype.name, [...array.shape], array.layout.isContiguousC], [name, [...shape], true]);
        assertEquals([...array.buffer.bytes()], expected, `array ${i}`);
      }
      await Promise.all(sends);
      for (const view of sent) view.buffer.close();
    }),
    60,
  );
});

test("an array arrives at the endpoint back to its sender, or else at the worker; also typed arrays", async () => {
  await using ends = await pair({ TLS: "tcp" });
  await using listener = await ends.receiver.listen();
  const client = await ends.sender.connect(listener);
  const server = await listener.accept();
  assert(server !== null);
  await client.sendArray(Float32Array.of(1.5, -2));
  using there = await server.recvArray();
  assertEquals(`${there}`, "[ 1.5 -2. ]");
  await server.sendArray(BigInt64Array.of(7n));
  using back = await client.recvArray();
  assertEquals([back.dtype.name, `${back}`], ["int64", "[7]"]);
  await assertRejects(() => server.sendArray({}), TypeError, "Cannot view");
});

test("arrays arrive in page-locked and GPU memory, small and large, in order with its stream", async () => {
  await using ends = await pair();
  const cuda = Cuda.simulate();
  const device = cuda.device(0);
  const stream = device.createStream();
  for (const length of [4, 100_000]) {
    const values = Float32Array.from({ length }, (_, i) => i);
    for (const place of [new PinnedMemoryResource(device), device.memory]) {
      const sent = ends.endpoint.sendArray(values);
      using array = await ends.receiver.recvArray({ place, stream });
      await sent;
      assertEquals(array.buffer.device, place === device.memory ? device : null);
      const read = new Float32Array(length);
      array.copyTo(read);
      stream.synchronize();
      assertEquals(read, values);
    }
  }
  stream.close();
  cuda.close();
});

// A place that is none was found out when the message had been taken: the array, and the parts, were lost.
test("a place where nothing can be received is refused before anything is taken; a device and the host are places", async () => {
  await using ends = await pair();
  const { endpoint, receiver } = ends;
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const [stream, closed, captured] = [device.createStream(), device.createStream(), device.createStream()];
  closed.close();
  const elsewhere = Cuda.simulate().device(0).createStream();
  const values = Float64Array.of(1, 2, 3);
  using capture = captured.beginCapture();
  const wrong: readonly object[] = [
    ...[null, 0, "device", device.defaultStream, {}].map((place) => ({ place })),
    ...[closed, elsewhere, captured, 1n].map((one) => ({ place: device.memory, stream: one })),
  ];
  for (const options of wrong) {
    const sends = [endpoint.sendArray(values), endpoint.sendMany([values])];
    await assertRejects(() => receiver.recvArray(options), TypeError, "Cannot");
    await assertRejects(() => receiver.recvMany(options), TypeError, "Cannot");
    using array = await receiver.recvArray();
    const [part] = await receiver.recvMany();
    assertEquals([array.toArray(), part?.nbytes], [[1, 2, 3], 24]);
    part?.close();
    await Promise.all(sends);
  }
  capture.end().close();
  for (const place of [device, device.memory, new SynchronousMemoryResource(device), "host"] as const) {
    const given = place === "host" ? { place } : { place, stream };
    const sends = [endpoint.sendArray(values), endpoint.sendMany([values])];
    using array = await receiver.recvArray(given);
    const [part] = await receiver.recvMany(given);
    assert(part !== undefined);
    assertEquals([array.device, part.device], place === "host" ? [null, null] : [device, device]);
    assertEquals([...await array.toTypedArray()], [1, 2, 3]);
    assertEquals([...await part.toTypedArray()], [...new Uint8Array(values.buffer)]);
    part.close();
    await Promise.all(sends);
  }
});

test("an array that comes to a GPU by way of the host is there for any stream, also where its memory has no home", async () => {
  await using ends = await pair();
  using cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  using stranger = device.createStream({ nonBlocking: true });
  const values = Float64Array.of(1, 2, 3);
  const sent = ends.endpoint.sendArray(values);
  using array = await ends.receiver.recvArray({ place: new SynchronousMemoryResource(device) });
  await sent;
  using memory = MemoryBuffer.fromPointer(array.ptr, array.nbytes, { device });
  using sink = new HostMemoryResource().allocate(array.nbytes);
  sink.copyFrom(memory, { stream: stranger });
  stranger.synchronize();
  assertEquals([...sink.bytes()], [...new Uint8Array(values.buffer)]);
});

test("a cancelled receive takes no array, a closed endpoint is an error, and a pending wait ends", async () => {
  await using ends = await pair();
  const { endpoint, receiver } = ends;
  const enough = new Error("enough");
  assertStrictEquals(await receiver.recvArray({ signal: AbortSignal.abort(enough) }).catch((error) => error), enough);
  await assertRejects(() => receiver.recvArray({ timeout: 10 }), Error, "UCS_ERR_TIMED_OUT");
  await endpoint.sendArray(Uint8Array.of(9));
  using array = await receiver.recvArray();
  assertEquals(`${array}`, "[9]");
  // An array that had arrived was lost to a signal that aborted in the same turn.
  for (const values of [Uint8Array.of(7), new Float64Array(100_000).fill(7)]) {
    const sent = endpoint.sendArray(values);
    for (let i = 0; i < 20; i++) {
      receiver.poll();
      await pause(2); // it arrives
    }
    const late = new AbortController();
    const given = receiver.recvArray({ signal: late.signal });
    late.abort(enough);
    assertStrictEquals(await given.catch((error) => error), enough);
    using same = await receiver.recvArray();
    assertEquals([same.size, same.get(0)], [values.length, 7]);
    await sent;
  }
  const waits = assertRejects(() => endpoint.recvArray(), TypeError, "the endpoint is closed");
  await endpoint.close();
  await waits;
});

test("headers that describe no array, or one of another size, are refused", async () => {
  const header = (text: string) => new TextEncoder().encode(text);
  const good = StridedMemoryView.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
  const read = readArrayHeader(writeArrayHeader(good), 24);
  assertEquals([read.dtype.name, read.shape], ["float32", [2, 3]]);
  assertThrows(() => readArrayHeader(writeArrayHeader(good), 23), TypeError, "23 bytes for shape (2, 3) of float32");
  const bad = [
    "",
    "null",
    "[]",
    '{"dtype":"float32"}',
    '{"dtype":"float33","shape":[1]}',
    '{"dtype":"int8","shape":[-1]}',
  ];
  bad.push(
    '{"dtype":"int8","shape":[0.5]}',
    '{"dtype":1,"shape":[1]}',
    `{"dtype":"int8","shape":[${Array(65).fill(1)}]}`,
  );
  for (const text of bad) {
    assertThrows(() => readArrayHeader(header(text), 1), TypeError, "expected its element type and shape");
  }
  assertThrows(() => readArrayHeader(Uint8Array.of(0xff), 1), TypeError, "a header of 1 other bytes");
  await check(fc.property(fc.string(), fc.nat(100), (text, bytes) => {
    try {
      readArrayHeader(header(text), bytes);
    } catch (error) {
      assert(error instanceof TypeError && error.message.startsWith("Cannot receive an array"), String(error));
    }
  }));
});
