/**
 * Memory and events of other processes. The other process is here another simulated driver: it has its own streams,
 * addresses and objects, and receives everything as a file, or as plain data.
 */
import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { type Schedule, SimulatedDriver } from "../../../src/public/sim.ts";
import type { BufferDescriptor } from "../../../src/public/sharing.ts";
import {
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../../mod.ts";
import { CUresult } from "../../../bindings/cuda_types.ts";
import { drainFrees } from "../../../src/order/deferred_free.ts";
import { fileWith, openFiles } from "../../support/open_files.ts";
import { intercept } from "../../support/intercept.ts";
import { check, fc } from "../../support/property.ts";
import { until } from "../../support/until.ts";
import { readBuffer } from "../../support/buffers.ts";
import { live, pair, sent, sharedPool, size } from "./pair.ts";

test("each process reads what the other writes into memory of a shared pool", () => {
  const before = openFiles();
  for (const device of [0, 1]) {
    using both = pair("latest");
    const { here, there } = both;
    using mine = here.device(device).createStream();
    using theirs = there.device(device).createStream();
    const [pool, imported] = sharedPool(both, device);
    assertEquals([pool.pool.isShareable, pool.pool.isImported], [true, false]);
    assertEquals([imported.pool.isShareable, imported.pool.isImported], [false, true]);
    using filler = pool.allocate(1000, { stream: mine }); // so that the buffer begins within a page
    using buffer = pool.allocate(size, { stream: mine });
    buffer.fill(0x11, { stream: mine });
    mine.synchronize();
    const copy = imported.importBuffer(sent(buffer.exportDescriptor()), { stream: theirs });
    assertEquals([copy.size, copy.stream, copy.kind], [size, theirs, "device"]);
    assertEquals(readBuffer(copy, there).every((byte) => byte === 0x11), true);
    copy.fill(0x22, { stream: theirs });
    theirs.synchronize();
    assertEquals(readBuffer(buffer, here).every((byte) => byte === 0x22), true);
    copy.close();
    theirs.synchronize();
    assertEquals(live(there).allocations, 0);
    assertEquals(readBuffer(buffer, here)[size - 1], 0x22, "closing an import frees nothing");
    imported.close();
    for (const one of [buffer, filler, pool]) one.close();
    mine.synchronize();
    drainFrees();
    assertEquals([live(here).pools, live(there).pools, live(here).allocations], [0, 0, 0]);
  }
  // The collector may meanwhile have closed files of other tests, too.
  assert(openFiles() <= before, `${openFiles()} files are open, and ${before} were`);
});

/** Writes here, reads there, with or without the event between. @returns whether the reader saw the written bytes */
function handOver(schedule: Schedule, seed: number, ordered: boolean): boolean {
  using both = pair(schedule, seed);
  const { here, there } = both;
  using producer = here.device(0).createStream();
  using consumer = there.device(0).createStream();
  const [pool, imported] = sharedPool(both);
  using buffer = pool.allocate(64, { stream: producer });
  using ready = here.device(0).createEvent({ interprocess: true });
  for (let i = 0; i < 4; i++) buffer.fill(i, { stream: producer });
  producer.record(ready);
  using copy = imported.importBuffer(buffer.exportDescriptor(), { stream: consumer });
  using seen = there.device(0).importEvent(sent(ready.exportHandle()));
  if (ordered) consumer.wait(seen);
  using sink = new HostMemoryResource().allocate(64);
  copy.copyTo(sink, { stream: consumer });
  consumer.synchronize();
  if (ordered) assertEquals([seen.isDone, ready.isDone], [true, true]);
  copy.close();
  imported.close();
  return sink.bytes().every((byte) => byte === 3);
}

test("an interprocess event orders the two processes' streams, whatever the schedule", () => {
  check(
    fc.property(fc.constantFrom<Schedule>("latest", "random", "round-robin"), fc.nat(), (schedule, seed) => {
      assertEquals(handOver(schedule, seed, true), true);
    }),
    150,
  );
});

test("control: without the event the reader is too early under some seed", () => {
  const wrong = Array.from({ length: 32 }, (_, seed) => handOver("random", seed, false)).filter((right) => !right);
  assert(wrong.length > 0 && !handOver("latest", 0, false));
});

test("an event that both record and wait for passes a token back and forth, without the hosts waiting", () => {
  check(
    fc.property(fc.constantFrom<Schedule>("latest", "random", "round-robin"), fc.nat(), (schedule, seed) => {
      using both = pair(schedule, seed);
      const { here, there } = both;
      const [pool, imported] = sharedPool(both);
      using mine = here.device(0).createStream();
      using theirs = there.device(0).createStream();
      using buffer = pool.allocate(16, { stream: mine });
      using event = here.device(0).createEvent({ interprocess: true });
      using turn = there.device(0).importEvent(event.exportHandle());
      assertEquals([turn.isInterprocess, turn.isDone], [true, true]);
      mine.record(event);
      using copy = imported.importBuffer(buffer.exportDescriptor(), { stream: theirs });
      for (let i = 1; i <= 5; i++) {
        mine.wait(event);
        buffer.fill(i, { stream: mine });
        mine.record(event);
        theirs.wait(turn);
        copy.fill(i + 100, { stream: theirs });
        theirs.record(turn);
      }
      event.synchronize();
      assertEquals([...readBuffer(buffer, here)], new Array(16).fill(105));
      copy.close();
      imported.close();
    }),
    60,
  );
});

test("memory freed by its owner after an event that the importer recorded is not reused before", () => {
  for (let seed = 0; seed < 40; seed++) {
    using both = pair("random", seed);
    const { here, there } = both;
    const [pool, imported] = sharedPool(both);
    using mine = here.device(0).createStream();
    using theirs = there.device(0).createStream();
    using done = there.device(0).createEvent({ interprocess: true });
    const buffer = pool.allocate(64, { stream: mine });
    buffer.fill(7, { stream: mine });
    mine.synchronize();
    const copy = imported.importBuffer(buffer.exportDescriptor(), { stream: theirs });
    using sink = new HostMemoryResource().allocate(64);
    copy.copyTo(sink, { stream: theirs });
    copy.close();
    theirs.record(done);
    using released = here.device(0).importEvent(done.exportHandle());
    mine.wait(released);
    buffer.close();
    using next = pool.allocate(64, { stream: mine });
    next.fill(9, { stream: mine });
    mine.synchronize();
    theirs.synchronize();
    assertEquals([...sink.bytes()], new Array(64).fill(7));
    imported.close();
  }
});

test("memory without a pool is shared by itself, a part of it too, and closing waits for the stream", () => {
  using both = pair("latest");
  const { here, there } = both;
  const owner = new SynchronousMemoryResource(here.device(1));
  const reader = new SynchronousMemoryResource(there.device(1));
  using mine = here.device(1).createStream();
  using theirs = there.device(1).createStream();
  using whole = owner.allocate(size, { stream: mine });
  whole.fill(1, { stream: mine });
  using part = MemoryBuffer.fromPointer(whole.ptr + 1000n, 50, { device: here.device(1), owner: whole });
  part.fill(2, { stream: mine });
  mine.synchronize();
  const descriptor = sent(part.exportDescriptor());
  assertEquals([descriptor.kind, descriptor.offset, descriptor.size], ["memory", 1000, 50]);
  const copy = reader.importBuffer(sent(whole.exportDescriptor()), { stream: theirs });
  const piece = reader.importBuffer(descriptor, { stream: theirs });
  assertEquals(piece.ptr - copy.ptr, 1000n);
  assertEquals([...readBuffer(piece, there)], new Array(50).fill(2));
  assertEquals([readBuffer(copy, there)[999], readBuffer(copy, there)[1050]], [1, 1]);
  using sink = new HostMemoryResource().allocate(50);
  piece.copyTo(sink, { stream: theirs });
  copy.close();
  piece.close(); // the copy has not run
  theirs.synchronize();
  assertEquals([...sink.bytes()], new Array(50).fill(2));
  drainFrees();
  assertEquals(live(there).allocations, 0);
  const own = assertThrows(() => owner.importBuffer(whole.exportDescriptor()), CudaError, "cuIpcOpenMemHandle_v2");
  assertEquals(own.codeName, "CUDA_ERROR_INVALID_CONTEXT");
});

test("memory is not imported to a stream of another Cuda, and closing it in a lost context is quiet", () => {
  using both = pair();
  const { here, there } = both;
  using foreign = here.device(0).createStream();
  const [pool, imported] = sharedPool(both);
  for (
    const [owner, reader, release] of [
      [pool, imported, "cuMemFreeAsync"],
      [
        new SynchronousMemoryResource(here.device(0)),
        new SynchronousMemoryResource(there.device(0)),
        "cuIpcCloseMemHandle",
      ],
    ] as const
  ) {
    using exported = owner.allocate(64);
    const descriptor = sent(exported.exportDescriptor());
    const before = live(there).allocations;
    assertThrows(() => reader.importBuffer(descriptor, { stream: foreign }), TypeError, "another Cuda");
    assertEquals(live(there).allocations, before);
    const copy = reader.importBuffer(descriptor);
    SimulatedDriver.of(there.driver)?.failNth(release, 1, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS);
    copy.close();
    there.device(0).synchronize();
    drainFrees();
  }
});

test("imported memory that is closed in a lost context, in whatever order, notifies its owner and leaves nothing", () => {
  using both = pair();
  const { here, there } = both;
  const [pool, imported] = sharedPool(both);
  let isLost = false;
  const failing = <T extends unknown[]>(call: (...args: T) => number) => (...args: T) =>
    isLost ? CUresult.CUDA_ERROR_ILLEGAL_ADDRESS : call(...args);
  intercept(there.driver, "event", ({ cuEventRecord, cuEventQuery }) => ({
    cuEventRecord: failing(cuEventRecord),
    cuEventQuery: failing(cuEventQuery),
  }));
  intercept(there.driver, "stream", ({ cuStreamWaitEvent, cuStreamQuery, cuStreamSynchronize }) => ({
    cuStreamWaitEvent: failing(cuStreamWaitEvent),
    cuStreamQuery: failing(cuStreamQuery),
    cuStreamSynchronize: failing(cuStreamSynchronize),
  }));
  for (
    const [owner, reader] of [
      [pool, imported],
      [new SynchronousMemoryResource(here.device(0)), new SynchronousMemoryResource(there.device(0))],
    ] as const
  ) {
    using exported = owner.allocate(64);
    const descriptor = sent(exported.exportDescriptor());
    const device = there.device(0);
    const [one, other] = [device.createStream(), device.createStream()];
    let notified = 0;
    const onRelease = () => void notified++;
    const buffers = [one, other, one].map((stream) => reader.importBuffer(descriptor, { stream, onRelease }));
    isLost = true;
    for (const buffer of buffers) buffer.close();
    drainFrees();
    isLost = false;
    assertEquals([notified, live(there).allocations], [3, 0]);
    for (const stream of [one, other]) stream.close();
  }
  imported.close();
});

test("an error while imported memory is returned in the background is reported, and ends nothing", async () => {
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  process.on("unhandledRejection", onError);
  try {
    using both = pair("latest");
    const { here, there } = both;
    using exported = new SynchronousMemoryResource(here.device(0)).allocate(64);
    using stream = there.device(0).createStream();
    const onRelease = () => {
      throw new Error("the owner is not there");
    };
    const descriptor = sent(exported.exportDescriptor());
    const copy = new SynchronousMemoryResource(there.device(0)).importBuffer(descriptor, { stream, onRelease });
    copy.fill(1, { stream });
    copy.close();
    await until(() => live(there).allocations === 0);
    assertEquals([errors, live(there).allocations], [[], 0]);
  } finally {
    process.off("unhandledRejection", onError);
  }
});

test("memory of zero bytes is shared like any other", () => {
  using both = pair();
  const { here, there } = both;
  const [pool, imported] = sharedPool(both);
  for (
    const [owner, reader] of [
      [pool, imported],
      [new SynchronousMemoryResource(here.device(0)), new SynchronousMemoryResource(there.device(0))],
    ] as const
  ) {
    using empty = owner.allocate(0);
    using copy = reader.importBuffer(sent(empty.exportDescriptor()));
    assertEquals([copy.ptr, copy.size], [0n, 0]);
  }
  imported.close();
});

test("memory that cannot be shared is refused, and the error says which memory can", () => {
  using both = pair();
  const { here } = both;
  const [pool, imported] = sharedPool(both);
  using stream = here.device(0).createStream();
  using plain = new DeviceMemoryResource(here.device(0), {});
  using buffer = plain.allocate(8, { stream });
  using shared = pool.allocate(8, { stream });
  assertThrows(() => plain.exportPool(), TypeError, "shareable: true");
  assertThrows(() => buffer.exportDescriptor(), TypeError, "shareable: true");
  assertThrows(() => here.device(0).memory.exportPool(), TypeError, "shareable: true");
  using pinned = new PinnedMemoryResource(here.device(0)).allocate(8);
  using host = new HostMemoryResource().allocate(8);
  assertThrows(() => pinned.exportDescriptor(), TypeError, "Cannot export pinned memory");
  assertThrows(() => host.exportDescriptor(), TypeError, "Cannot export host memory");
  using copy = imported.importBuffer(shared.exportDescriptor());
  assertThrows(() => copy.exportDescriptor(), TypeError, "export it from that process");
  assertThrows(() => imported.exportPool(), TypeError, "Cannot export this pool");
  assertThrows(() => imported.allocate(8), TypeError, "Cannot allocate from the pool of another process");
  assertThrows(() => pool.importBuffer(shared.exportDescriptor()), TypeError, "importPool()");
  shared.close();
  assertThrows(() => shared.exportDescriptor(), TypeError, "closed MemoryBuffer");
  imported.close();
});

test("an invalid descriptor is refused, and nothing is left behind", () => {
  using both = pair();
  const { here, there } = both;
  const [pool, imported] = sharedPool(both);
  const [other] = sharedPool(both);
  using stream = here.device(0).createStream();
  using shared = pool.allocate(8, { stream });
  using foreign = other.allocate(8, { stream });
  using event = here.device(0).createEvent({ interprocess: true });
  const descriptor = shared.exportDescriptor();
  const before = { ...live(there) };
  const importing = (change: object) => () => imported.importBuffer({ ...descriptor, ...change } as BufferDescriptor);

  assertThrows(importing({ data: "00" }), TypeError, "with 128 digits, got something else");
  assertThrows(importing({ data: "zz".repeat(64) }), TypeError, "with 128 digits");
  assertThrows(importing({ kind: "memory" }), TypeError, "expected one of pool memory");
  assertThrows(importing({ size: -1 }), RangeError, "Cannot import -1 bytes");
  assertThrows(importing({ size: 2 ** 53 }), RangeError, "safe integers");
  assertThrows(importing({ offset: 0.5 }), RangeError, "safe integers");
  assertThrows(importing({ device: there.device(1).uuid }), RangeError, "which is device 1 here");
  assertThrows(importing({ device: "GPU-1" }), RangeError, "which this process does not see");
  assertThrows(importing({ data: "ab".repeat(64) }), CudaError, "CUDA_ERROR_INVALID_VALUE");
  assertThrows(() => imported.importBuffer(foreign.exportDescriptor()), CudaError, "CUDA_ERROR_INVALID_VALUE");
  assertThrows(() => there.device(0).importEvent(descriptor), TypeError, "expected one of event");
  assertThrows(() => there.device(1).importEvent(event.exportHandle()), RangeError, "which is device 0 here");
  using closed = there.device(0).createStream();
  closed.close();
  assertThrows(() => imported.importBuffer(descriptor, { stream: closed }), TypeError, "closed CudaStream");
  const handle = event.exportHandle();
  event.close();
  assertThrows(() => there.device(0).importEvent(handle), CudaError, "CUDA_ERROR_INVALID_HANDLE");
  assertThrows(() => event.exportHandle(), TypeError, "closed CudaEvent");
  shared.close();
  assertThrows(importing({}), CudaError, "CUDA_ERROR_INVALID_VALUE");

  const files = openFiles();
  using nonsense = fileWith(new Uint8Array(64));
  assertThrows(() => DeviceMemoryResource.importPool(there.device(0), nonsense), CudaError, "CUDA_ERROR_INVALID_VALUE");
  nonsense.close();
  assertThrows(() => DeviceMemoryResource.importPool(there.device(0), nonsense), TypeError, "closed FileDescriptor");
  const file = pool.exportPool();
  pool.close();
  stream.synchronize();
  assertThrows(() => DeviceMemoryResource.importPool(there.device(0), file), CudaError, "CUDA_ERROR_INVALID_VALUE");
  file.close();
  assert(openFiles() <= files, "no file is left open"); // the collector may have closed others
  assertEquals(live(there), before);
  imported.close();
  assertThrows(importing({}), TypeError, "closed memory pool");
});

test("an imported pool lives as long as its last buffer, and access to it is granted anew", () => {
  using both = pair();
  const { here, there } = both;
  const [pool, imported] = sharedPool(both);
  pool.peerAccessibleBy = [1];
  assertEquals([pool.peerAccessibleBy.size, imported.peerAccessibleBy.size], [1, 0]);
  imported.peerAccessibleBy.add(1);
  assertEquals([...imported.peerAccessibleBy], [there.device(1)]);
  using stream = here.device(0).createStream();
  using shared = pool.allocate(8, { stream });
  shared.fill(3, { stream });
  stream.synchronize();
  const copy = imported.importBuffer(shared.exportDescriptor());
  assertNotEquals(copy.ptr, 0n);
  imported.close();
  assertEquals(live(there).pools, 1);
  assertEquals([...readBuffer(copy, there)], new Array(8).fill(3));
  copy.close();
  drainFrees();
  assertEquals(live(there).pools, 0);
});
