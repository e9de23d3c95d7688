/**
 * UCX knows no streams: it gets memory once all writes are done that the home stream's next work would see, and the
 * event loop keeps running until then.
 */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { SimulatedDriver } from "../../src/public/sim.ts";
import {
  Cuda,
  type CudaStream,
  HostMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
  Ucx,
  type UcxEndpoint,
  UcxError,
} from "../../mod.ts";
import { laneKinds, Order } from "../support/stream_lanes.ts";
import { check, fc } from "../support/property.ts";

type Step =
  | { readonly do: "write"; readonly lane: number }
  | { readonly do: "wait"; readonly lane: number; readonly before: number };

const lane = fc.nat(laneKinds.length - 1);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ do: fc.constant("write" as const), lane }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const), lane, before: lane }) },
  ),
  { minLength: 1, maxLength: 12 },
);
const schedule = fc.constantFrom("latest" as const, "random" as const);
const blocking = ["cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize"];

/** A simulated device with a stream of each kind. */
function setUp(options: Parameters<typeof Cuda.simulate>[0]) {
  const cuda = Cuda.simulate(options);
  const device = cuda.device(0);
  const simulated = SimulatedDriver.of(cuda.driver);
  assert(simulated !== null);
  const streams = laneKinds.map((kind) => {
    if (kind === "legacy") return device.defaultStream;
    return kind === "thread" ? device.perThreadStream : device.createStream({ nonBlocking: kind === "free" });
  });
  const waits = () => blocking.reduce((sum, call) => sum + simulated.calls(call), 0);
  return { cuda, device, streams, pinned: new PinnedMemoryResource(device), waits };
}

/** Enqueues the steps: each write sets its own byte to 1. Returns the bytes that the next work of `home` would see. */
function enqueue(
  cuda: Cuda,
  streams: readonly CudaStream[],
  program: readonly Step[],
  buffer: MemoryBuffer,
  home: number,
) {
  const order = new Order(laneKinds.length);
  const writes: { readonly byte: number; readonly lane: number; readonly number: number }[] = [];
  program.forEach((step, byte) => {
    const stream = streams[step.lane];
    assert(stream !== undefined);
    if (step.do === "wait") {
      const before = streams[step.before];
      if (before === undefined || before === stream) return;
      stream.wait(before);
      order.wait(step.lane, step.before, "new event");
    } else {
      const write = () => cuda.driver.fill.cuMemsetD8Async(buffer.ptr + BigInt(byte), 1, 1n, stream.handle);
      assertEquals(stream.device.withContext(write), 0);
      writes.push({ byte, lane: step.lane, number: order.work(step.lane) });
    }
  });
  const due = order.upcoming(home);
  return writes.filter(({ lane, number }) => number <= (due[lane] ?? 0)).map(({ byte }) => byte);
}

/** A worker connected to itself. */
async function loop() {
  const ucx = Ucx.open({ config: { TLS: "tcp" } });
  const worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  const close = async () => {
    await worker.close();
    ucx.close();
  };
  return { worker, endpoint, [Symbol.asyncDispose]: close };
}

test("page-locked memory is sent after all work its home stream would wait for, on default streams too", async () => {
  await using ends = await loop();
  const { worker, endpoint } = ends;
  await check(
    fc.asyncProperty(steps, lane, schedule, fc.nat(), fc.boolean(), async (program, home, schedule, seed, isTurned) => {
      const { cuda, device, streams, pinned, waits } = setUp({ schedule, seed });
      const stream = streams[home];
      assert(stream !== undefined);
      using buffer = pinned.allocate(program.length, { stream });
      buffer.bytes().fill(0);
      const due = enqueue(cuda, streams, program, buffer, home);
      const seen = new Uint8Array(program.length);
      const before = waits();
      // A view that is not contiguous is sent from a copy, which must not be made earlier either.
      const bytes = StridedMemoryView.fromBuffer(buffer, { shape: [program.length], dtype: "uint8" });
      await Promise.all([endpoint.send(isTurned ? bytes.sliced(slice(null, null, -1)) : buffer), worker.recv(seen)]);
      if (isTurned) seen.reverse();
      const held = waits() - before;
      assertEquals(due.filter((byte) => seen[byte] !== 1), []);
      assertEquals(held, 0, "the event loop was blocked");
      device.synchronize();
      cuda.close();
    }),
    200,
  );
});

test("page-locked memory is received into after all work that its home stream would wait for", async () => {
  await using ends = await loop();
  const { worker, endpoint } = ends;
  await check(
    fc.asyncProperty(steps, lane, schedule, fc.nat(), async (program, home, schedule, seed) => {
      const { cuda, device, streams, pinned, waits } = setUp({ schedule, seed });
      const stream = streams[home];
      assert(stream !== undefined);
      using buffer = pinned.allocate(program.length, { stream });
      const due = enqueue(cuda, streams, program, buffer, home);
      const before = waits();
      await Promise.all([worker.recv(buffer), endpoint.send(new Uint8Array(program.length).fill(7))]);
      const held = waits() - before;
      device.synchronize(); // everything due before the message is written now
      assertEquals(due.filter((byte) => buffer.bytes()[byte] !== 7), []);
      assertEquals(held, 0, "the event loop was blocked");
      cuda.close();
    }),
    200,
  );
});

test("messages are sent and received in the order of the calls, whichever must wait for a stream", async () => {
  await using ends = await loop();
  const { worker, endpoint } = ends;
  const pending = fc.array(fc.tuple(fc.boolean(), fc.boolean(), lane), { minLength: 2, maxLength: 8 });
  await check(
    fc.asyncProperty(pending, schedule, fc.nat(), async (messages, schedule, seed) => {
      const { cuda, device, streams, pinned } = setUp({ schedule, seed });
      const memory = (isBusy: boolean, home: number, value: number): MemoryBuffer => {
        const stream = streams[home];
        assert(stream !== undefined);
        const buffer = pinned.allocate(1, { stream });
        buffer.bytes().fill(value);
        if (isBusy) buffer.fill(value, { stream });
        return buffer;
      };
      const from = messages.map(([isBusy, , home], index) => memory(isBusy, home, index + 1));
      const into = messages.map(([, isBusy, home]) => memory(isBusy, home, 0));
      const all = [...into.map((buffer) => worker.recv(buffer)), ...from.map((buffer) => endpoint.send(buffer))];
      await Promise.all(all);
      assertEquals(into.map((buffer) => buffer.bytes()[0]), messages.map((_, index) => index + 1));
      for (const buffer of [...from, ...into]) buffer.close();
      device.synchronize();
      cuda.close();
    }),
    100,
  );
});

/** Memory not written yet, and whether its buffer was freed. */
function busy() {
  const { cuda, device, pinned } = setUp({ schedule: "latest" });
  const stream = device.createStream();
  const buffer = pinned.allocate(4, { stream });
  buffer.fill(1, { stream });
  return { buffer, cuda };
}

test("an operation that waits for its memory ends with its endpoint or worker, and a close waits for it", async () => {
  await using ends = await loop();
  const { worker } = ends;
  const error = new UcxError("ucp_worker_progress", -25);
  const reasons = {
    "The endpoint was closed": (one: UcxEndpoint) => one.close({ force: true }),
    "ucp_worker_progress failed": (one: UcxEndpoint) => one.fail(error),
    "The other side has closed the connection, or its process has ended": (one: UcxEndpoint) => one.lose(),
    "enough": (_: UcxEndpoint, aborter: AbortController) => aborter.abort(new TypeError("enough")),
  };
  for (const [reason, act] of Object.entries(reasons)) {
    const { buffer, cuda } = busy();
    const one = await worker.connect(worker.address);
    const aborter = new AbortController();
    const ended = assertRejects(() => one.send(buffer, { tag: 5n, signal: aborter.signal }), Error, reason);
    await act(one, aborter);
    await ended;
    buffer.close();
    cuda.close(); // would wait for the buffer if anything retained it
    await one.close();
  }
  const { buffer, cuda } = busy();
  const receiving = worker.recv(new Uint8Array(4), { tag: 5n });
  const one = await worker.connect(worker.address);
  const sending = one.send(buffer, { tag: 5n });
  const host = new HostMemoryResource();
  using next = host.allocate(4);
  next.fill(3);
  const { ptr } = next;
  const after = one.send(next, { tag: 6n }); // queued behind the first
  for (const closed of [buffer, next]) closed.close(); // the waiting sends keep them alive
  using other = host.allocate(4);
  other.fill(9);
  assert(other.ptr !== ptr);
  const seen = new Uint8Array(4);
  await Promise.all([one.close(), sending, after, worker.recv(seen, { tag: 6n })]);
  assertEquals(await receiving, { length: 4, tag: 5n });
  assertEquals([...seen], [3, 3, 3, 3]);
  cuda.close();

  const late = busy();
  const into = assertRejects(() => worker.recv(late.buffer), TypeError, "The worker was closed");
  worker.abort();
  await into;
});

test("a copy that waits for its elements has their length, whatever its pooled operation had before", async () => {
  await using ends = await loop();
  const { worker, endpoint } = ends;
  const { device, pinned } = setUp({ schedule: "latest" });
  const stream = device.createStream();
  using buffer = pinned.allocate(8, { stream });
  const turned = () => {
    buffer.fill(5, { stream }); // the send has to wait for it
    return StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" }).sliced(slice(null, null, -1));
  };
  /** Uses the next operation for a send of the given size. */
  const before = async (bytes: number) => {
    await Promise.all([
      endpoint.send(new Uint8Array(bytes), { tag: 1n }),
      worker.recv(new Uint8Array(bytes), { tag: 1n }),
    ]);
  };
  const fives = Array(8).fill(5);
  for (const length of [1000, 2, 0]) {
    await before(length);
    const [parts] = await Promise.all([worker.recvMany({ tag: 2n }), endpoint.sendMany([turned()], { tag: 2n })]);
    assertEquals(parts.map((part) => [...part.buffer.bytes()]), [fives]);
    const [memory, into] = [new Uint8Array(new ArrayBuffer(64)), new Uint8Array(8)];
    using region = worker.register(memory.subarray(0, 4));
    using key = endpoint.remote(region.key);
    await before(length);
    await assertRejects(() => endpoint.put(turned(), key), RangeError, "it has 4 bytes");
    assertEquals(memory, new Uint8Array(64));
    await before(length);
    await Promise.all([endpoint.rawStream.send(turned()), endpoint.rawStream.recvAll(into)]);
    assertEquals([...into], fives);
  }
});
