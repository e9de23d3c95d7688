/**
 * Values that contain memory are sent between processes, in order, and the memory is kept as long as it is in use. The
 * other process is another simulated driver; the connection is a real socket.
 */
import { needs } from "../../support/needs.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { CUresult } from "../../../bindings/cuda_types.ts";
import { errno, libc as tables } from "../../../bindings/libc.ts";
import { FfiError } from "../../../src/ffi/errors.ts";
import { libc } from "../../../src/ffi/libc.ts";
import { type Schedule, SimulatedDriver } from "../../../src/public/sim.ts";
import {
  FileDescriptor,
  MemoryChannel,
  type Shareable,
  UnixListener,
  UnixSocket,
} from "../../../src/public/sharing.ts";
import {
  Cuda,
  CudaError,
  type CudaEvent,
  DeviceMemoryResource,
  HostMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../../mod.ts";
import { extract, restore } from "../../../src/memory/sharing/channel_message.ts";
import { contentOf, fileWith, openFiles } from "../../support/open_files.ts";
import { FailingCalls } from "../../support/failing_calls.ts";
import { intercept } from "../../support/intercept.ts";
import { check, fc } from "../../support/property.ts";
import { runtimes, startIn } from "../../support/runtimes.ts";
import { assertNothingLeft, ends, live, until } from "./ends.ts";

const json: fc.Arbitrary<Shareable> = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Shareable>;

test("any JSON arrives as it was sent, wherever resources stand in it", async () => {
  const all = ends();
  const tree = fc.letrec<{ value: Shareable }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      json,
      fc.constant("FILE"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(fc.string(), tie("value"), { maxKeys: 3 }),
    ),
  })).value;
  const withFiles = (value: Shareable, make: () => Shareable): Shareable => {
    if (value === "FILE") return make();
    if (Array.isArray(value)) return value.map((one: Shareable) => withFiles(one, make));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withFiles(one as Shareable, make)]));
  };
  const before = openFiles();
  await check(
    fc.asyncProperty(tree, async (value) => {
      const files: FileDescriptor[] = [];
      const sent = withFiles(value, () => {
        const file = fileWith(Uint8Array.of(files.length));
        files.push(file);
        return file;
      });
      await all.owner.send(sent);
      let read = 0;
      const received = await all.user.receive();
      const plain = (one: unknown): unknown => {
        if (one instanceof FileDescriptor) {
          assertEquals([...contentOf(one)], [read++]);
          one.close();
          return "FILE";
        }
        if (Array.isArray(one)) return one.map(plain);
        if (typeof one !== "object" || one === null) return one;
        return Object.fromEntries(Object.entries(one).map(([key, member]) => [key, plain(member)]));
      };
      assertEquals(JSON.stringify(plain(received)), JSON.stringify(withFiles(value, () => "FILE")));
      assertEquals(read, files.length);
      for (const file of files) file.close();
    }),
    150,
  );
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
  all.owner.close();
  assertEquals(await all.user.receive(), undefined);
  all.user.close();
  await assertNothingLeft(all);
});

type Owner = "pool" | "synchronous";

/** Sends buffers that are read and closed there; here each is closed at once and its memory used for the next. */
async function passOn(schedule: Schedule, seed: number, owner: Owner): Promise<void> {
  const all = ends(schedule, seed);
  const [device, other] = [all.here.device(0), all.there.device(0)];
  const mine = device.createStream();
  const theirs = other.createStream();
  const resource = owner === "pool"
    ? new DeviceMemoryResource(device, { shareable: true })
    : new SynchronousMemoryResource(device);
  const sinks: MemoryBuffer[] = [];
  const rounds = Array.from({ length: 1 + seed % 4 }, (_, i) => i + 1);
  for (const round of rounds) {
    const buffer = resource.allocate(64, { stream: mine });
    buffer.fill(round, { stream: mine });
    await all.owner.send([buffer, round]);
    buffer.close(); // it now belongs to the other side
    const [copy, number] = await all.user.receive({ stream: theirs }) as [MemoryBuffer, number];
    assertEquals([number, copy.stream], [round, theirs]);
    const sink = new HostMemoryResource().allocate(64);
    copy.copyTo(sink, { stream: theirs });
    copy.close();
    sinks.push(sink);
    if (seed % 5 < 3) await until("the release", () => all.owner.shared === 0);
  }
  if (seed % 3 === 0) all.user.close(); // its release messages must arrive nevertheless
  await until("the last release", () => all.owner.shared === 0);
  // The other side's work was ordered before the free: to check this, the memory is reused.
  using again = resource.allocate(64, { stream: mine });
  again.fill(99, { stream: mine });
  mine.synchronize();
  theirs.synchronize();
  assertEquals(sinks.map((sink) => [...sink.bytes()]), rounds.map((round) => new Array(64).fill(round)));
  for (const closing of [all.user, all.owner, again]) closing.close();
  mine.synchronize();
  if (resource instanceof DeviceMemoryResource) resource.close();
  for (const stream of [mine, theirs]) stream.close();
  await assertNothingLeft(all);
}

test("memory that was sent and closed is reused only after the receiver's work, whatever the schedule", async () => {
  await check(
    fc.asyncProperty(
      fc.constantFrom<Schedule>("latest", "random", "round-robin"),
      fc.nat(),
      fc.constantFrom<Owner>("pool", "synchronous"),
      passOn,
    ),
    40,
  );
});

test("pools, events and several buffers are sent in one value, and a pool is sent once", async () => {
  const all = ends();
  const device = all.here.device(1);
  const stream = device.createStream();
  const pool = new DeviceMemoryResource(device, { shareable: true });
  const buffers = [1, 2, 3].map((i) => pool.allocate(i * 10, { stream }));
  const event = device.createEvent({ interprocess: true });
  await all.owner.send({ pool, buffers, event });
  const first = await all.user.receive() as {
    pool: DeviceMemoryResource;
    buffers: MemoryBuffer[];
    event: CudaEvent;
  };
  assert(first.pool.pool.isImported && first.event.isInterprocess);
  assertEquals(first.buffers.map(({ size }) => size), [10, 20, 30]);
  assertEquals(first.buffers.map(({ pool }) => pool), new Array(3).fill(first.pool.pool));
  assertEquals(first.buffers.map(({ device }) => device?.ordinal), [1, 1, 1]);
  await all.owner.send(pool);
  assertEquals(await all.user.receive(), first.pool);
  assertEquals([live(all.there).pools, all.owner.shared], [1, 3]);
  const further = first.pool.importBuffer(buffers[0]?.exportDescriptor() ?? fail());
  further.close();
  await assertRejects(() => all.user.send(first.pool), TypeError, "Cannot export this pool");
  await assertRejects(() => all.user.send(first.buffers), TypeError, "export it from that process");
  for (const one of [...first.buffers, first.event]) one.close();
  await until("the release", () => all.owner.shared === 0);
  for (const one of [...buffers, event, pool, stream, all.owner, all.user]) one.close();
  await assertNothingLeft(all);
});

test("two channels between the same processes carry the same memory, and closing one leaves the other", async () => {
  const { here, there, owner, user } = ends("latest");
  const [one, other] = UnixSocket.pair();
  const second = { owner: new MemoryChannel(one, here), user: new MemoryChannel(other, there) };
  const [mine, theirs] = [here.device(0).createStream(), there.device(0).createStream()];
  const pool = new DeviceMemoryResource(here.device(0), { shareable: true });
  const buffer = pool.allocate(64, { stream: mine });
  buffer.fill(9, { stream: mine });
  for (const way of [owner, second.owner]) await way.send(buffer);
  buffer.close();
  const [copy, same] = [await user.receive({ stream: theirs }), await second.user.receive({ stream: theirs })];
  assert(copy instanceof MemoryBuffer && same instanceof MemoryBuffer);
  assertEquals(copy.ptr, same.ptr);
  copy.close();
  for (const closing of [owner, user]) closing.close();
  await until("the first release", () => owner.shared === 0);
  const seen = new Uint8Array(new ArrayBuffer(64));
  same.copyTo(seen, { stream: theirs });
  theirs.synchronize();
  assertEquals(new Set(seen), new Set([9]));
  for (const closing of [same, second.user, second.owner, pool, mine, theirs]) closing.close();
  await assertNothingLeft({ here, there });
});

test("a receiver that is gone, or closes without reading, returns everything", async () => {
  for (const how of ["gone", "closed", "closed later"] as const) {
    const [here, there] = [Cuda.simulate(), Cuda.simulate()];
    const [one, other] = UnixSocket.pair();
    const before = openFiles();
    const owner = new MemoryChannel(one, here);
    const user = how === "gone" ? null : new MemoryChannel(other, there);
    const stream = here.device(0).createStream();
    const pool = new DeviceMemoryResource(here.device(0), { shareable: true });
    const buffer = pool.allocate(64, { stream });
    if (how === "closed") user?.close();
    await owner.send(buffer).catch(() => {});
    buffer.close();
    assertEquals(live(here).allocations, how === "closed" ? 0 : 1, how);
    if (how === "gone") other.close();
    else user?.close();
    await until(`the release by a receiver that is ${how}`, () => owner.shared === 0);
    assertEquals(live(here).allocations, 0);
    for (const closing of [owner, pool, stream]) closing.close();
    await until("the end", () => one.isClosed && other.isClosed);
    await assertNothingLeft({ here, there });
    await until("the files' end", () => openFiles() <= before - 2);
  }
});

test("a channel that is closed while its memory is in use ends when the memory is returned", async () => {
  const [here, there] = [Cuda.simulate(), Cuda.simulate()];
  const [one, other] = UnixSocket.pair();
  const [owner, user] = [new MemoryChannel(one, here), new MemoryChannel(other, there)];
  const stream = here.device(0).createStream();
  const pool = new DeviceMemoryResource(here.device(0), { shareable: true });
  const buffer = pool.allocate(64, { stream });
  await owner.send(buffer);
  const copy = await user.receive() as MemoryBuffer;
  for (const closing of [owner, owner, user, buffer, pool, stream]) closing.close();
  await assertRejects(() => owner.send(null), TypeError, "closed MemoryChannel");
  await assertRejects(() => user.receive(), TypeError, "closed MemoryChannel");
  await delay(30);
  assertEquals([one.isClosed, other.isClosed, live(here).allocations], [false, false, 1]);
  using sink = new HostMemoryResource().allocate(64);
  copy.copyTo(sink, { stream: there.device(0).defaultStream });
  copy.close();
  await until("the end", () => one.isClosed && other.isClosed);
  await assertNothingLeft({ here, there });
});

test("memory that cannot be freed when it is returned leaves no other memory behind", async () => {
  for (const how of ["returned", "gone"] as const) {
    const [here, there] = [Cuda.simulate(), Cuda.simulate()];
    const [one, other] = UnixSocket.pair();
    const [owner, user] = [new MemoryChannel(one, here), new MemoryChannel(other, there)];
    const stream = here.device(0).createStream();
    const pool = new DeviceMemoryResource(here.device(0), { shareable: true });
    const buffers = [64, 64, 64].map((bytes) => pool.allocate(bytes, { stream }));
    using kept = pool.allocate(64, { stream });
    await owner.send(kept);
    const copy = await user.receive() as MemoryBuffer;
    if (how === "returned") user.close(); // it returns all three at once
    const sent = owner.send(buffers);
    for (const buffer of buffers) buffer.close();
    SimulatedDriver.of(here.driver)?.failNth("cuMemFreeAsync", 1, CUresult.CUDA_ERROR_UNKNOWN);
    await sent;
    if (how === "gone") other.close();
    await until("the return", () => live(here).allocations === 2);
    assertEquals(owner.shared, how === "gone" ? 0 : 1);
    await assertRejects(() => owner.receive(), CudaError, "cuMemFreeAsync");
    for (const closing of [copy, owner, user, pool, stream, here, there]) closing.close();
  }
});

test("what was passed to send arrives even if the channel is closed before it is sent, and then the end", async () => {
  const all = ends();
  const sent = Promise.all(["first", "second"].map((value) => all.owner.send(value)));
  all.owner.close();
  assertEquals([await all.user.receive(), await all.user.receive()], ["first", "second"]);
  assertEquals(await all.user.receive(), undefined);
  await sent;
  all.user.close();
  await assertNothingLeft(all);
});

// The owner's connection stays open until the memory is returned, so its end cannot tell a user that keeps the memory
// until no more messages arrive: a pipeline of two processes hung.
test("a process that keeps memory is notified that its owner closed the channel, after all values", async () => {
  const all = ends();
  const stream = all.here.device(0).createStream();
  const pool = new DeviceMemoryResource(all.here.device(0), { shareable: true });
  const buffer = pool.allocate(64, { stream });
  await all.owner.send(buffer);
  const received = await all.user.receive() as MemoryBuffer;
  const last = all.user.receive();
  await all.owner.send("the last");
  all.owner.close();
  assertEquals(await last, "the last");
  assertEquals(await all.user.receive({ signal: AbortSignal.timeout(20_000) }), undefined);
  assertEquals(all.owner.shared, 1); // and may be used as long as it is kept
  received.close();
  all.user.close();
  for (const one of [buffer, pool, stream]) one.close();
  await assertNothingLeft(all);
});

test("memory closed in a lost context, or where no mark can be made, is still returned to its owner", async () => {
  for (const code of [CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, CUresult.CUDA_ERROR_OUT_OF_MEMORY]) {
    for (const isClosedFirst of [false, true]) {
      const all = ends();
      const { here, there, owner, user } = all;
      const stream = here.device(0).createStream();
      const pool = new DeviceMemoryResource(here.device(0), { shareable: true });
      const buffer = pool.allocate(64, { stream });
      await owner.send(buffer);
      const copy = await user.receive() as MemoryBuffer;
      for (const closing of [buffer, pool, stream]) closing.close();
      if (isClosedFirst) user.close();
      let isFailing = true;
      const failing = <T extends unknown[]>(call: (...args: T) => number) => (...args: T) =>
        isFailing ? code : call(...args);
      intercept(there.driver, "event", ({ cuEventRecord }) => ({ cuEventRecord: failing(cuEventRecord) }));
      copy.close();
      isFailing = false;
      await until("the memory's return", () => live(here).allocations === 0);
      for (const closing of [owner, user]) closing.close();
      await assertNothingLeft(all);
    }
  }
});

test("memory returned after its Cuda was closed needs no order any more, and the channel still works", async () => {
  for (const kept of ["nothing", "another device"] as const) {
    const { here, there, owner, user } = ends();
    const [device, other] = [here.device(1), here.device(0)];
    const keeping = kept === "nothing" ? null : other.memory.allocate(8);
    const memory = new SynchronousMemoryResource(device).allocate(64);
    const sentBuffers = [device.defaultStream, other.defaultStream].map((stream) =>
      MemoryBuffer.fromPointer(memory.ptr, 64, { device, stream })
    );
    await owner.send(sentBuffers);
    const copies = await user.receive() as MemoryBuffer[];
    for (const one of [...sentBuffers, memory, here]) one.close();
    for (const one of copies) one.close();
    await until("the release", () => owner.shared === 0);
    await user.send("after");
    assertEquals(await owner.receive(), "after");
    for (const one of [owner, user, keeping, there]) one?.close();
  }
});

test("where a stream cannot wait for the receiver's work the host waits, before the memory is free", async () => {
  const all = ends("latest");
  const [mine, theirs] = [all.here.device(0).createStream(), all.there.device(0).createStream()];
  const pool = new DeviceMemoryResource(all.here.device(0), { shareable: true });
  const buffer = pool.allocate(64, { stream: mine });
  await all.owner.send(buffer);
  buffer.close();
  const copy = await all.user.receive({ stream: theirs }) as MemoryBuffer;
  const sink = new PinnedMemoryResource(all.there.device(0)).allocate(64);
  copy.fill(7, { stream: theirs });
  copy.copyTo(sink, { stream: theirs });
  SimulatedDriver.of(all.here.driver)?.failNth("cuStreamWaitEvent", 1, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  copy.close();
  await until("the release", () => all.owner.shared === 0);
  assertEquals(sink.bytes()[0], 7, "the receiver's work is over");
  await all.owner.send("after");
  assertEquals(await all.user.receive(), "after");
  for (const one of [sink, all.user, all.owner, pool, mine, theirs]) one.close();
  await assertNothingLeft(all);
});

test("a value that cannot be imported is returned, and the channel still works", async () => {
  const all = ends("random", 0, 1);
  const device = all.here.device(1); // the other side has one device
  const stream = device.createStream();
  const pool = new DeviceMemoryResource(device, { shareable: true });
  const good = new DeviceMemoryResource(all.here.device(0), { shareable: true });
  const [bad, fine] = [pool.allocate(8, { stream }), good.allocate(8)];
  const before = openFiles();
  using file = fileWith(new Uint8Array(1));
  await all.owner.send({ fine, bad, file });
  file.close();
  await assertRejects(() => all.user.receive(), RangeError, "which this process does not see");
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
  await until("the release", () => all.owner.shared === 0);
  await all.owner.send("after");
  assertEquals(await all.user.receive(), "after");
  for (const one of [bad, fine, pool, good, stream, all.user, all.owner]) one.close();
  await assertNothingLeft(all);
});

// What came with the message that failed was forgotten, although the other side sends it once: all later ones failed.
test("a message that fails loses nothing of what it introduced: later ones are received", async () => {
  const cases = [
    { fails: null, times: 0, isReceived: false }, // a device that is not seen there
    { fails: "cuMemPoolImportFromShareableHandle", times: 1, isReceived: true }, // tried again at once
    { fails: "cuMemPoolImportFromShareableHandle", times: 2, isReceived: false },
    { fails: "cuIpcOpenEventHandle", times: 1, isReceived: true },
    { fails: "cuIpcOpenEventHandle", times: 2, isReceived: false },
  ] as const;
  for (const { fails, times, isReceived } of cases) {
    const all = ends("random", 0, 1);
    const allocate = (at: number) => {
      const device = all.here.device(at);
      const pool = new DeviceMemoryResource(device, { shareable: true });
      const stream = device.createStream();
      return { buffer: pool.allocate(8, { stream }), pool, stream };
    };
    const [seen, unseen] = [allocate(0), allocate(1)];
    for (let n = 1; n <= times; n++) {
      SimulatedDriver.of(all.there.driver)?.failNth(fails ?? "", n, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
    }
    await all.owner.send(fails === null ? { unseen: unseen.buffer, seen: seen.buffer } : { seen: seen.buffer });
    const first = await all.user.receive().then((value) => value as { seen: MemoryBuffer }, () => null);
    assertEquals(first !== null, isReceived, `${fails} ${times}`);
    first?.seen.close();
    await all.owner.send({ seen: seen.buffer });
    const second = await all.user.receive() as { seen: MemoryBuffer };
    assertEquals(second.seen.size, 8);
    second.seen.close();
    for (const { buffer, pool, stream } of [seen, unseen]) for (const one of [buffer, pool, stream]) one.close();
    for (const one of [all.user, all.owner]) one.close();
    await assertNothingLeft(all);
  }
});

test("what the driver refuses of another process is an error that says what it is for", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using event = device.createEvent({ interprocess: true });
  assertThrows(
    () => device.importEvent(event.exportHandle()),
    CudaError,
    "by another process than the one that made it",
  );
  const pools = (file: FileDescriptor) => DeviceMemoryResource.importPool(device, file);
  using file = fileWith(new Uint8Array(1));
  assertThrows(() => pools(file), CudaError, "Is it what exportPool() of another process returned?");
  assertThrows(() => pools({} as FileDescriptor), TypeError, "expected a FileDescriptor");
});

test("a wrong stream, device, socket or value is refused, and nothing is lost", async () => {
  const all = ends();
  using elsewhere = Cuda.simulate();
  using stream = elsewhere.device(0).createStream();
  await all.owner.send("kept");
  for (const wrong of [stream, 5]) { // the value had been taken by then
    await assertRejects(() => all.user.receive({ stream: wrong as typeof stream }), TypeError, "with a stream");
  }
  assertEquals(await all.user.receive(), "kept");
  using memory = new DeviceMemoryResource(elsewhere.device(0), { shareable: true });
  using buffer = memory.allocate(8);
  for (const foreign of [memory, buffer]) {
    await assertRejects(() => all.owner.send({ foreign }), TypeError, "Cannot send a resource of another Cuda");
  }
  const view = StridedMemoryView.fromTypedArray(new Float32Array(2));
  await assertRejects(() => all.owner.send({ view } as unknown as Shareable), TypeError, "of a view: view.buffer");
  const cycle: { inner?: unknown } = {};
  cycle.inner = [cycle];
  await assertRejects(() => all.owner.send(cycle as Shareable), TypeError, "at inner.0: it contains itself");
  const twice = { one: 1 };
  await all.owner.send([twice, twice]);
  assertEquals(await all.user.receive(), [twice, twice]);
  assertThrows(() => new MemoryChannel("name" as unknown as UnixSocket, all.here), TypeError, "expected a UnixSocket");
  for (const one of [all.user, all.owner]) one.close();
  await assertNothingLeft(all);
});

test("an import within the exporting process is refused by the driver", async () => {
  using cuda = Cuda.simulate();
  const [one, other] = UnixSocket.pair();
  using owner = new MemoryChannel(one, cuda);
  using user = new MemoryChannel(other, cuda);
  using buffer = new SynchronousMemoryResource(cuda.device(0)).allocate(8);
  await owner.send(buffer);
  await assertRejects(() => user.receive(), CudaError, "CUDA_ERROR_INVALID_CONTEXT");
  await until("the release", () => owner.shared === 0);
});

test("an invalid value is refused before anything is sent, and nothing stays shared", async () => {
  const all = ends();
  const pool = new DeviceMemoryResource(all.here.device(0), { shareable: true });
  using buffer = pool.allocate(8);
  using host = new HostMemoryResource().allocate(8);
  const wrong: [unknown, ErrorConstructor | TypeErrorConstructor | RangeErrorConstructor, string][] = [
    [{ a: [buffer, 1n] }, TypeError, "Cannot send 1n at a.1"],
    [[buffer, Number.NaN], TypeError, "NaN at 1"],
    [[buffer, new Map()], TypeError, "an instance of Map at 1"],
    [undefined, TypeError, "undefined: expected JSON"],
    [[buffer, new Uint8Array(3)], TypeError, "an instance of Uint8Array at 1"],
    [[buffer, host], TypeError, "Cannot export host memory"],
    [[buffer, all.here.device(0).createEvent()], TypeError, "interprocess: true"],
    [[buffer, "x".repeat(70_000)], RangeError, "expected 1 to 65536"],
  ];
  const before = openFiles();
  for (const [value, kind, message] of wrong) {
    await assertRejects(() => all.owner.send(value as Shareable), kind, message);
    assertEquals(all.owner.shared, 0, message);
  }
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
  await all.owner.send({ buffer });
  const { buffer: copy } = await all.user.receive() as { buffer: MemoryBuffer };
  assertEquals(copy.size, 8, "the pool that was not sent before is sent now");
  copy.close();
  for (const one of [all.user, all.owner, pool]) one.close();
});

test("a channel connects to a listener, and a wait for a value can be ended", async () => {
  const path = `@causeway-channel-${process.pid}`;
  using listener = UnixListener.listen(path);
  using here = Cuda.simulate();
  using there = Cuda.simulate();
  const connecting = MemoryChannel.connect(path, there, { timeout: 1000 });
  using owner = new MemoryChannel(await listener.accept(), here);
  using user = await connecting;
  const stop = new AbortController();
  const waiting = user.receive({ signal: stop.signal });
  stop.abort(new Error("enough"));
  await assertRejects(() => waiting, Error, "enough");
  await owner.send(["still", "there"]);
  assertEquals(await user.receive(), ["still", "there"]);
});

for (const runtime of runtimes) {
  test(
    ...needs(runtime.missing, `a channel to ${runtime.name} carries values and files, and reclaims refused memory`),
    async () => {
      const path = `@causeway-channel-${process.pid}-${runtime.name}`;
      using here = Cuda.simulate();
      using listener = UnixListener.listen(path);
      const { printed } = startIn(runtime, new URL("./memory_channel_child.ts", import.meta.url), [path]);
      using channel = new MemoryChannel(await listener.accept(), here);
      await channel.send({ some: ["value", 1] });
      assertEquals(await channel.receive(), { value: '{"some":["value",1]}' });
      using file = fileWith(new TextEncoder().encode("what is in it"));
      await channel.send(file);
      const { file: read, back } = await channel.receive() as { file: string; back: FileDescriptor };
      assertEquals([read, new TextDecoder().decode(contentOf(back))], ["what is in it", "what is in it"]);
      back.close();
      // A simulated pool exists in this process only, and the other one has to report that.
      using pool = new DeviceMemoryResource(here.device(0), { shareable: true });
      using buffer = pool.allocate(64);
      await channel.send({ buffer });
      const refusal = await channel.receive() as { refused: string; call: string };
      assertEquals(refusal, { refused: "CUDA_ERROR_INVALID_VALUE", call: "cuIpcOpenEventHandle" });
      await until("the release", () => channel.shared === 0);
      channel.close();
      await printed;
    },
  );
}

test("a wait for a value ends with the first error that has ended the channel", async () => {
  using cuda = Cuda.simulate();
  const garbage = new TextEncoder().encode("{");
  for (const what of ["close", "garbage", "end", "close, garbage", "garbage, close"] as const) {
    const [one, other] = UnixSocket.pair();
    const user = new MemoryChannel(other, cuda);
    const waiting = [user.receive(), user.receive()].map((value) => value.catch((error: unknown) => error));
    for (const step of what.split(", ")) {
      if (step === "close") user.close();
      else if (step === "end") one.close();
      else await one.send(garbage).catch(() => {}); // the other end may be closed
      await delay(5);
    }
    for (const outcome of await Promise.all(waiting)) {
      if (what === "end") assertEquals(outcome, undefined);
      else assert(outcome instanceof (what.startsWith("close") ? TypeError : SyntaxError), `${what}: ${outcome}`);
    }
    const again = user.receive();
    if (what.includes("close")) await assertRejects(() => again, TypeError, "closed MemoryChannel");
    else if (what === "garbage") await assertRejects(() => again, SyntaxError);
    else assertEquals(await again, undefined);
    for (const closing of [user, one]) closing.close();
    await until("the end", () => other.isClosed);
  }
});

test("where the system has no memory for a message, nothing is lost, and nothing stays shared", async () => {
  using calls = new FailingCalls(libc(), { sockets: tables.sockets });
  const noMemory = new FfiError("calloc failed");
  const failures = [
    ["sendmsg", errno.ENOBUFS],
    ["recvmsg", errno.ENOMEM],
    ["sendmsg", noMemory],
    ["recvmsg", noMemory],
  ] as const;
  for (const [call, failure] of failures) {
    let hasFailed = true;
    for (let nth = 1; hasFailed; nth++) {
      const { here, there, owner, user } = ends();
      const pool = new DeviceMemoryResource(here.device(0), { shareable: true });
      if (typeof failure === "number") calls.failNthWith(call, nth, failure);
      else calls.throwNth(call, nth, failure);
      const buffer = pool.allocate(64);
      await owner.send(buffer);
      buffer.close();
      const received = await user.receive() as MemoryBuffer;
      received.close();
      await until(`the return of what was sent, with ${call} ${nth}`, () => owner.shared === 0);
      for (const one of [owner, user, pool]) one.close();
      await assertNothingLeft({ here, there });
      ({ hasFailed } = calls);
    }
  }
});

// The return named a mark that was learned only when the program took the value: it ended the channel.
test("memory is returned also before a value is taken that was sent earlier, of the same stream", async () => {
  const { here, there, owner, user } = ends();
  using pool = new DeviceMemoryResource(here.device(0), { shareable: true });
  using theirs = new DeviceMemoryResource(there.device(0), { shareable: true });
  using sent = pool.allocate(64);
  await owner.send(sent);
  const received = await user.receive() as MemoryBuffer;
  using mine = theirs.allocate(64);
  await user.send(mine);
  received.close();
  await until("the return", () => owner.shared === 0);
  const value = await owner.receive() as MemoryBuffer;
  value.close();
  await until("the other return", () => user.shared === 0);
  await owner.send("still there");
  assertEquals(await user.receive(), "still there");
  for (const closing of [owner, user]) closing.close();
});

// The second message arrived before the first, named a mark that was never sent, and ended the channel.
test("messages keep their order also where the system has no memory for one of them", async () => {
  for (const first of ["a return", "a value"]) {
    const { here, there, owner, user } = ends();
    using pool = new DeviceMemoryResource(here.device(0), { shareable: true });
    using theirs = new DeviceMemoryResource(there.device(0), { shareable: true });
    using mine = theirs.allocate(64);
    const sent = [pool.allocate(64), pool.allocate(64)];
    await owner.send(sent);
    const [one, other] = await user.receive() as [MemoryBuffer, MemoryBuffer];
    {
      using calls = new FailingCalls(libc(), { sockets: tables.sockets });
      calls.failNthWith("sendmsg", 1, errno.ENOBUFS);
      const sending = first === "a value" ? user.send(mine) : undefined; // it describes the mark of the stream
      for (const buffer of [one, other]) buffer.close(); // the same stream
      await sending;
      await until(`both returns after ${first}`, () => owner.shared === 0);
      assert(calls.hasFailed);
    }
    if (first === "a value") (await owner.receive() as MemoryBuffer).close();
    await until("the return", () => user.shared === 0);
    for (const closing of [...sent, owner, user]) closing.close();
  }
});

test("an invalid message ends the channel on both sides", async () => {
  using cuda = Cuda.simulate();
  const [one, other] = UnixSocket.pair();
  using user = new MemoryChannel(other, cuda);
  using file = fileWith(Uint8Array.of(1));
  await one.send(new TextEncoder().encode("{"), [file]);
  await assertRejects(() => user.receive(), SyntaxError);
  await assertRejects(() => user.send(null), SyntaxError);
  assertEquals(await one.receive(), null);
  one.close();
});

test("a resource is put back where it was taken from, and nowhere else", () => {
  using file = fileWith(new Uint8Array(0));
  assertEquals(extract(file), { value: null, found: [{ path: [], resource: file }] });
  assertEquals(restore(null, [], file), file);
  assertEquals(restore({ a: [1, null] }, ["a", 1], file), { a: [1, file] });
  for (const path of [["b"], ["a", 2], ["__proto__"], ["a", "length", "x"]]) {
    let message = "";
    try {
      restore({ a: [1, null] }, path, file);
    } catch (error) {
      message = String(error);
    }
    assert(message.includes("it has no member"), `${path}: ${message}`);
  }
});

function fail(): never {
  throw new Error("there is no such buffer");
}
