/**
 * What untyped programs pass by mistake is refused with what was expected, not with an engine's error about a property
 * of undefined, and nothing is left behind.
 */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  ArrowArray,
  arrowField,
  Cuda,
  ExchangeError,
  liveExports,
  ManagedMemoryResource,
  readNpy,
  readNpz,
  StridedMemoryView,
  Ucx,
  writeNpy,
  writeNpz,
} from "../../mod.ts";
import { MemoryChannel, UnixListener, UnixSocket } from "../../src/public/sharing.ts";
import { decodeVortexIpc, readVortexIpc, VortexSession } from "../../src/public/vortex.ts";
import { scratchFolder } from "../support/scratch.ts";

/** A value from an untyped program. */
const any = (value: unknown) => value as never;
const view = StridedMemoryView.fromTypedArray(new Float32Array(8));
const dlpack = (device: unknown) => () =>
  StridedMemoryView.from(any({ __dlpack__: () => view.toDlpack(), __dlpack_device__: device }));
const arrow = new ArrowArray({ field: arrowField("C"), length: 1, buffers: [null, view.view("uint8")] });

/** Calls by what is wrong with them, and the beginning of the error. */
const calls: Record<string, [call: () => unknown, error: RegExp]> = {
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

test("managed memory is migrated and advised about with what it needs", () => {
  using cuda = Cuda.simulate({ check: true });
  const resource = new ManagedMemoryResource(cuda.device(0));
  using buffer = resource.allocate(8);
  assertThrows(() => resource.prefetch(any(undefined), null, any(undefined)), TypeError, "expected a MemoryBuffer");
  assertThrows(() => resource.prefetch(buffer, null, any(undefined)), TypeError, "expected a CudaStream");
  assertThrows(() => resource.advise(any({}), "SET_READ_MOSTLY", null), TypeError, "expected a MemoryBuffer");
  assertThrows(() => cuda.device(0).importEvent(any(undefined)), TypeError, "Cannot import a handle");
});
