/**
 * What untyped programs pass by mistake is refused with what was expected, not with an engine's error about a property
 * of undefined, and nothing is left behind.
 */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  ArrowArray,
  arrowField,
  Cuda,
  DType,
  ExchangeError,
  liveExports,
  ManagedMemoryResource,
  MemoryBuffer,
  readNpy,
  readNpz,
  StridedLayout,
  StridedMemoryView,
  Ucx,
  writeNpy,
  writeNpz,
} from "../../mod.ts";
import { FileDescriptor, MemoryChannel, UnixListener, UnixSocket } from "../../src/public/sharing.ts";
import { decodeVortexIpc, encodeVortexIpc, openVortex, readVortexIpc, VortexSession } from "../../src/public/vortex.ts";
import { scratchFolder } from "../support/scratch.ts";

/** A value from an untyped program. */
const any = (value: unknown) => value as never;
const view = StridedMemoryView.fromTypedArray(new Float32Array(8));
const dlpack = (device: unknown) => () =>
  StridedMemoryView.from(any({ __dlpack__: () => view.toDlpack(), __dlpack_device__: device }));
const arrow = new ArrowArray({ field: arrowField("C"), length: 1, buffers: [null, view.view("uint8")] });

/** Values that JavaScript can convert neither to a number nor to text. */
const opaque: Readonly<Record<string, unknown>> = { "a symbol": Symbol("x"), "no prototype": Object.create(null) };

const table = StridedLayout.dense([2, 3], 4);
const kernelOf = (cuda: Cuda) =>
  cuda.device(0).loadPtx(
    ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }",
  ).kernel("k");

/** Calls with such a value where a number or a name is expected. */
const opaqueCalls: Readonly<Record<string, [call: (value: never) => unknown, error: RegExp]>> = {
  "an itemsize of dense": [(value) => StridedLayout.dense([2], value), /^Expected itemsize to be a positive integer/],
  "an itemsize": [(value) => new StridedLayout([2], null, value), /^Expected itemsize to be a positive integer/],
  "a new itemsize": [(value) => table.repacked(value), /^Expected itemsize to be a positive integer/],
  "a largest itemsize": [(value) => table.maxCompatibleItemsize({ max: value }), /^Expected itemsize/],
  "a layout's options": [(value) => new StridedLayout([2], null, 4, any({ divideStrides: value })), /divideStrides/],
  "an order": [(value) => StridedLayout.dense([2, 3], 4, value), /^Expected order to be "C", "F" or a permutation/],
  "an order of toDense": [(value) => table.toDense(value), /^Expected order to be "C", "F" or a permutation/],
  "an order of a copy": [(value) => view.copy({ order: value }), /^Expected order to be "C", "F" or a permutation/],
  "a convention": [(value) => DType.from("int4").require(value), /^Expected "typestr", "arrowFormat" or "typedArray"/],
  "a code": [(value) => DType.from({ code: value, bits: 32, lanes: 1 }), /^Expected code of a DLPack dtype/],
  "lanes": [(value) => DType.from({ code: 2, bits: 32, lanes: value }), /^Expected lanes of a DLPack dtype/],
  "padding": [(value) => DType.from({ code: 17, bits: 4, lanes: 1, padded: value }), /to be true or false/],
  "a consumer's stream": [(value) => view.toDlpack({ stream: value }), /^Cannot order a consumer on the stream/],
  "a version": [(value) => view.toDlpack({ maxVersion: value }), /^Cannot export for version/],
  "a part of a version": [(value) => view.toDlpack({ maxVersion: [value, 0] }), /^Cannot export for version/],
  "a consumer's device": [(value) => view.toDlpack({ dlDevice: [value, 0] }), /^Cannot export to device/],
  "whether to copy": [(value) => view.toDlpack({ copy: value }), /^Cannot export with copy/],
  "a start in an ArrayBuffer": [
    (value) => MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8), value),
    /expected integers within 8 bytes/,
  ],
  "a size in an ArrayBuffer": [
    (value) => MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8), 0, value),
    /expected integers within 8 bytes/,
  ],
  "the start of a slice": [(value) => arrow.sliced(value), /^Cannot slice 1 elements from .* to 1: expected/],
  "the end of a slice": [(value) => arrow.sliced(0, value), /^Cannot slice 1 elements from 0 to .*: expected/],
  "a descriptor": [(value) => FileDescriptor.adopt(value), /^Cannot own file descriptor .*: expected an integer/],
  ...Object.fromEntries(
    ["devices", "memory", "seed", "maxInstructions", "driverVersion", "schedule"].map((name) => [
      `${name} of a simulator`,
      [(value: never) => Cuda.simulate({ [name]: value }), new RegExp(`^Cannot simulate (the )?${name}.*: expected`)],
    ]),
  ),
  "a device's attribute": [
    (value) => {
      using cuda = Cuda.simulate();
      cuda.device(0).attribute(value);
    },
    /^Cannot query the attribute/,
  ],
  "an attribute of a path": [
    (value) => {
      using cuda = Cuda.simulate({ devices: 2 });
      cuda.device(0).peerAttribute(value, cuda.device(1));
    },
    /^Cannot query the peer attribute/,
  ],
  "a kernel's attribute": [
    (value) => {
      using cuda = Cuda.simulate();
      kernelOf(cuda).attribute(value);
    },
    /^Cannot query the attribute/,
  ],
  "a priority": [
    (value) => {
      using cuda = Cuda.simulate();
      cuda.device(0).createStream({ priority: value });
    },
    /^Cannot create a stream of priority .*: expected an integer from/,
  ],
};

test("what JavaScript cannot convert to a number or to text is refused as any other value", () => {
  for (const [what, [call, error]] of Object.entries(opaqueCalls)) {
    for (const [kind, value] of Object.entries(opaque)) {
      const thrown = assertThrows(() => call(any(value)));
      assert(thrown instanceof TypeError, `${what} that is ${kind}: ${thrown}`);
      assert(error.test(thrown.message), `${what} that is ${kind}: ${thrown.message}`);
    }
  }
});

test("a simulator says what it cannot be of", () => {
  const gone = new Uint8Array(4);
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  assertThrows(() => Cuda.simulate({ devices: any(gone) }), TypeError, "devices: an instance of Uint8Array: expected");
  assertThrows(() => Cuda.simulate({ seed: any(3n) }), TypeError, "the seed 3n: expected an integer");
  assertThrows(() => Cuda.simulate({ schedule: any(["latest"]) }), TypeError, 'the schedule ("latest",): expected');
  for (const devices of [4865, 1e9, Number.MAX_SAFE_INTEGER]) {
    assertThrows(() => Cuda.simulate({ devices }), RangeError, `devices: ${devices}: expected at most 4864`);
  }
  using cuda = Cuda.simulate({ devices: 4864 });
  assertEquals(cuda.devices.length, 4864);
  using standard = Cuda.simulate(any({ devices: undefined, seed: undefined, freesWait: undefined, memory: undefined }));
  assertEquals(standard.devices.length, 1);
});

test("more elements than an array can have are refused", () => {
  const one = StridedMemoryView.zeros([1], "int8");
  for (const shape of [[2 ** 33], [2, 2 ** 31], [2 ** 20, 2 ** 20, 1]]) {
    const large = one.broadcastTo(shape);
    const error = assertThrows(() => large.toArray(), RangeError, "expected fewer than 2^32 elements. view.sliced()");
    assert(error.message.startsWith(`Cannot make arrays of shape (${shape.join(", ")}`), error.message);
    assertThrows(() => large.toJSON(), RangeError, "expected fewer than 2^32 elements");
  }
  const none = StridedMemoryView.zeros([1, 0], "int8");
  assertThrows(() => none.broadcastTo([2 ** 32, 0]).toArray(), RangeError, "expected fewer than 2^32");
  assertEquals(StridedMemoryView.zeros([0, 1], "int8").broadcastTo([0, 2 ** 33]).toArray(), []);
});

test("a typed array has as many values as it holds, whatever a subclass says", () => {
  class Long extends Float32Array {
    override get length(): number {
      return 1e9;
    }
  }
  const long = new Long(new Float32Array([1, 2]).buffer);
  assertEquals(StridedMemoryView.fromArray(long).toArray(), [1, 2]);
  assertEquals(StridedMemoryView.fromArray([long, new Float32Array([3, 4])]).toArray(), [[1, 2], [3, 4]]);
});

test("a view without elements is closed like any other", async () => {
  using cuda = Cuda.simulate();
  for (const place of ["host", cuda.device(0)] as const) {
    const empty = StridedMemoryView.zeros([0, 2], { dtype: "float32", device: place });
    const same = StridedMemoryView.zeros([0, 2], "float32");
    empty.buffer.close();
    const uses: Record<string, () => unknown> = {
      fill: () => empty.fill(1),
      toString: () => empty.toString(),
      equals: () => empty.equals(same),
      "equals of the other": () => same.equals(empty),
      "equals of another shape": () => StridedMemoryView.zeros([1]).equals(empty),
      asTypedArray: () => empty.asTypedArray(),
      toArray: () => empty.toArray(),
      copy: () => empty.copy(),
      copyFrom: () => empty.copyFrom(same),
    };
    for (const [what, use] of Object.entries(uses)) {
      const error = assertThrows(use, TypeError, undefined, what);
      if (place === "host" || !/Array$/.test(what)) assert(/closed MemoryBuffer/.test(error.message), error.message);
    }
    await assertRejects(() => empty.toTypedArray(), TypeError, "closed MemoryBuffer");
    assert(inspect(empty).endsWith(", closed"), inspect(empty));
  }
});

/** Calls by what is wrong with them, and the beginning of the error. */
const calls: Record<string, [call: () => unknown, error: RegExp]> = {
  "a view for its layout": [
    () => StridedLayout.denseLike(any(view)),
    /^Expected a StridedLayout, got an instance of StridedMemoryView; a view has one: view.layout$/,
  ],
  "no layout": [() => StridedLayout.denseLike(any(undefined)), /^Expected a StridedLayout, got undefined$/],
  "fields of a layout": [() => StridedLayout.denseLike(any({ layout: 5 })), /got an instance of Object$/],
  "an unknown convention": [() => DType.from("int4").require(any("name")), /^Expected "typestr", .*, got "name"$/],
  "a code that is a bigint": [() => DType.from(any({ code: 2n, bits: 32, lanes: 1 })), /^Expected code .*, got 2n$/],
  "no shape": [
    () => StridedMemoryView.fromBuffer(view.buffer, any({ dtype: "float32" })),
    /^Expected shape to be an array of integers, got undefined$/,
  ],
  "a shape that is null": [
    () => StridedMemoryView.fromBuffer(view.buffer, any({ dtype: "float32", shape: null })),
    /^Expected shape to be an array of integers, got null$/,
  ],
  "an Arrow type of bigints": [() => arrowField(any([1n])), /^Cannot name the Arrow type \(1n,\): Arrow has no such/],
  "an Arrow type with a bigint": [() => arrowField(any({ kind: "int", bits: 32n })), /^Cannot name the Arrow type/],
  "a device that is a number": [dlpack(() => 5), /__dlpack_device__\(\) returned 5, expected \[type, id\]/],
  "a device that is an object": [dlpack(() => ({})), /returned an instance of Object, expected/],
  "a device that is a symbol": [dlpack(() => [Symbol("s")]), /expected \[type, id\]/],
  "a device that has no text": [dlpack(() => [{ toString: null }]), /expected \[type, id\]/],
  "a device that is no function": [dlpack(7), /expected \[type, id\]/],
  "options of an export that are null": [() => view.__arrow_c_array__(any(null)), /^Expected an object of options/],
  "options of an export that are text": [() => arrow.toArrowDevice(any("abc")), /^Expected an object of options/],
  "a schema that is an object": [
    () => arrow.__arrow_c_array__({ requestedSchema: any({}) }),
    /^Expected requestedSchema to be a field/,
  ],
  "a schema that is a number": [() => view.toArrowDevice({ requestedSchema: any(5) }), /^Expected requestedSchema/],
  "no place for a move": [
    () => {
      using exported = arrow.toArrowDevice();
      exported.moveTo(any(undefined));
    },
    /pass both addresses/,
  ],
  "no path of a socket": [() => UnixListener.listen(any(undefined)), /^Expected the path of a socket/],
  "a library that is a number": [() => Ucx.open({ library: any(1) }), /^Expected library to be the path of libucp/],
  "no messages": [() => decodeVortexIpc(any(undefined)), /^Cannot read Vortex messages from undefined/],
  "no encoding": [
    () => new VortexSession().register(any(undefined)),
    /^Cannot register undefined: expected an encoding/,
  ],
  "no extension": [() => new VortexSession().registerExtension(any({})), /expected an extension type, with an id/],
};

test("a device is any sequence whose first is a number", () => {
  for (const device of [[1, 0], Int32Array.of(1, 0), new Set([1, 0])]) {
    using seen = dlpack(() => device)();
    assertEquals(seen.size, 8);
  }
});

test("a call with what it cannot use says what it expects", () => {
  const before = liveExports();
  for (const [what, [call, error]] of Object.entries(calls)) {
    const thrown = assertThrows(call);
    assert(thrown instanceof TypeError || thrown instanceof ExchangeError, `${what}: ${thrown}`);
    assert(error.test(thrown.message), `${what}: ${thrown.message}`);
    assertEquals(liveExports(), before, what);
  }
});

test("so does a call that is awaited", async () => {
  const path = join(scratchFolder(), "a.npz");
  await assertRejects(
    () => MemoryChannel.connect(any(undefined), any(undefined)),
    TypeError,
    "Expected the path of a socket",
  );
  await assertRejects(() => UnixSocket.connect(any(["a"])), TypeError, "Expected the path of a socket");
  await assertRejects(() => readVortexIpc(any(5)).next(), TypeError, "Cannot read Vortex messages from 5");
  await assertRejects(() => writeNpz(path, any(new Map([[1, view]]))), Error, "an array named 1");
  await assertRejects(() => writeNpz(path, { view }, { compressed: any(5) }), TypeError, "Expected compressed");
});

test("bytes that are transferred before or while they are read are refused", async () => {
  const path = join(scratchFolder(), "a.npy");
  await writeNpy(path, StridedMemoryView.arange(100_000));
  for (const read of [readNpy, readNpz]) {
    const gone = new Uint8Array(8);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    await assertRejects(() => read(gone), TypeError, "that were transferred");
  }
  const bytes = Uint8Array.from(readFileSync(path));
  const reading = readNpy(bytes);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  await assertRejects(() => reading, TypeError, "that were transferred");
});

const file = new URL("../../examples/trips.vortex", import.meta.url);

/** Takes memory away, as `postMessage` does. */
function transfer(bytes: Uint8Array<ArrayBuffer>): void {
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
}

test("so are those of a Vortex file, whenever they are transferred", async () => {
  const gone = Uint8Array.from(readFileSync(file));
  const { buffer } = gone;
  transfer(gone);
  for (const source of [gone, buffer]) {
    await assertRejects(() => openVortex(source), TypeError, "that was transferred: it is gone. Transfer a copy");
  }
  let read = 0;
  for (let steps = 0; steps < 80; steps++) {
    const bytes = Uint8Array.from(readFileSync(file));
    const reading = (async () => {
      using opened = await openVortex(bytes);
      for await (const batch of opened.scan()) read += batch.length;
    })();
    for (let step = 0; step < steps; step++) await null;
    transfer(bytes);
    await reading.catch((error) => {
      assert(error instanceof TypeError, `after ${steps}: ${error}`);
      assert(error.message.includes("that was transferred: it is gone"), `after ${steps}: ${error.message}`);
    });
  }
  assert(read > 0, "80 steps are enough for a batch");
});

test("so are those of Vortex messages", async () => {
  using opened = await openVortex(file);
  const why = "that was transferred: it is gone";
  for await (const batch of opened.scan({ rows: [0, 9] })) {
    const { dtype, array } = encodeVortexIpc(batch);
    const whole = () => Uint8Array.from([...dtype, ...array]);
    const early = whole();
    transfer(early);
    assertThrows(() => decodeVortexIpc(early), TypeError, why);
    await assertRejects(() => readVortexIpc(early).next(), TypeError, why);
    const late = whole();
    const decoded = decodeVortexIpc(late);
    transfer(late);
    assertThrows(() => decoded.toArrow(), TypeError, why);
    assertThrows(() => encodeVortexIpc(decoded), TypeError, why);
    assertThrows(() => encodeVortexIpc({} as never), TypeError, "expected a VortexArray, got an instance of Object");
    const pieces = async function* (...given: readonly unknown[]) {
      yield* given as readonly Uint8Array[];
    };
    await assertRejects(() => readVortexIpc(pieces(early)).next(), TypeError, why);
    await assertRejects(() => readVortexIpc(pieces("text")).next(), TypeError, 'Vortex messages from "text": expected');
    const held = async function* () {
      const first = whole().slice(0, -8);
      yield first;
      transfer(first); // what was read of it does not suffice
      yield whole().slice(-8);
    };
    await assertRejects(() => readVortexIpc(held()).next(), TypeError, why);
  }
});

test("managed memory is migrated and advised about with what it needs", () => {
  using cuda = Cuda.simulate({ check: true });
  const resource = new ManagedMemoryResource(cuda.device(0));
  using buffer = resource.allocate(8);
  assertThrows(() => resource.prefetch(any(undefined), null, any(undefined)), TypeError, "expected a MemoryBuffer");
  assertThrows(() => resource.prefetch(buffer, null, any(undefined)), TypeError, "expected a CudaStream");
  assertThrows(() => resource.advise(any({}), "SET_READ_MOSTLY", null), TypeError, "expected a MemoryBuffer");
  assertThrows(() => cuda.device(0).importEvent(any(undefined)), TypeError, "Cannot import a handle");
});
