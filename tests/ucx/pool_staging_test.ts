/**
 * Large messages from memory that other processes cannot map: through staging pieces of ours, copied in the order of
 * the buffer's stream. Against a libucp whose every answer is scripted, on simulated GPUs.
 */
import { assert, assertEquals, assertNotEquals, assertRejects, assertThrows } from "@std/assert";
import { afterEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { CUresult } from "../../bindings/cuda_types.ts";
import {
  Cuda,
  CudaError,
  type CudaStream,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  type MemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { none } from "../../src/layout/mod.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { reclaim } from "../../src/order/mod.ts";
import { PendingCopies, type PendingCopy } from "../../src/ucx/pending_copies.ts";
import { PoolStaging, stagedFrom, type StagingPiece } from "../../src/ucx/pool_staging.ts";
import { plainTags } from "../../src/ucx/tag.ts";
import { check, fc } from "../support/property.ts";
import { contentOf } from "../support/ucx_messages.ts";
import { openScripted } from "./scripted_endpoint.ts";

const opened: (() => void)[] = [];
afterEach(() => opened.splice(0).reverse().forEach((close) => close()));

/** A simulated device that runs work as late as possible. */
function simulated(seed = 0) {
  const cuda = Cuda.simulate({ schedule: "latest", seed });
  const device = cuda.device(0);
  const streams = Array.from({ length: 3 }, () => device.createStream({ nonBlocking: true }));
  opened.push(() => {
    for (const stream of streams) stream.close();
    cuda.close();
  });
  const [from, to, other] = streams as [CudaStream, CudaStream, CudaStream]; // as many as are made
  const driver = SimulatedDriver.of(cuda.driver);
  assert(driver !== null);
  return { cuda, device, driver, from, to, other };
}

/** The bytes at an address now, whatever work on them streams still have pending. */
function bytesAt(ptr: bigint, bytes: number, beside: CudaStream): Uint8Array {
  using memory = MemoryBuffer.fromPointer(ptr, bytes, { device: beside.device });
  using sink = new HostMemoryResource().allocate(bytes);
  sink.copyFrom(memory, { stream: beside });
  beside.synchronize();
  return sink.bytes().slice();
}

/** Writes to an address at once, as another process does, whatever work on it streams still have pending. */
function writeTo(ptr: bigint, content: Uint8Array, beside: CudaStream): void {
  using memory = MemoryBuffer.fromPointer(ptr, content.length, { device: beside.device });
  memory.copyFrom(content, { stream: beside });
  beside.synchronize();
}

/** Whether a copy is pending, by its event alone; the event of a freed piece is closed, which throws. */
function isUnderWay({ event }: PendingCopy): boolean {
  try {
    return !event.isDone;
  } catch {
    return false;
  }
}

const size = 3 * stagedFrom;

type Step =
  | { readonly do: "reserve"; readonly bytes: number; readonly copy: boolean }
  | { readonly do: "release"; readonly which: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant("reserve" as const),
      bytes: fc.integer({ min: stagedFrom, max: 6 * stagedFrom }),
      copy: fc.boolean(),
    }),
    fc.record({ do: fc.constant("release" as const), which: fc.nat() }),
  ),
  { maxLength: 30 },
);

test("a piece has one user at a time, after its last copy, and no more bytes are in use than allowed", async () => {
  await check(fc.property(steps, fc.nat(), fc.integer({ min: 0, max: 20 }), (program, seed, units) => {
    const cuda = Cuda.simulate({ schedule: "latest", seed, devices: 1 });
    const device = cuda.device(0);
    const staging = new PoolStaging(units * stagedFrom);
    using stream = device.createStream({ nonBlocking: true });
    using buffer = device.memory.allocate(6 * stagedFrom, { stream });
    const withPool = device.memoryInfo().free;
    const reserved: { readonly piece: StagingPiece; readonly bytes: number }[] = [];
    const copies = new Map<bigint, PendingCopy>();
    for (const step of program) {
      if (step.do === "release") {
        if (reserved.length > 0) reserved.splice(step.which % reserved.length, 1)[0]?.piece.release();
        continue;
      }
      const piece = staging.reserve(buffer, step.bytes);
      const inUse = reserved.reduce((sum, { bytes }) => sum + bytes, 0);
      if (piece === null) {
        // Pieces are at most a quarter longer than requested, and those not in use make room.
        assert(inUse * 1.25 + step.bytes * 1.25 > units * stagedFrom, "the piece would have fitted");
        continue;
      }
      assert(inUse + step.bytes <= units * stagedFrom, "more bytes are in use than allowed");
      for (const { piece: { ptr }, bytes } of reserved) {
        assert(piece.ptr + BigInt(step.bytes) <= ptr || ptr + BigInt(bytes) <= piece.ptr, "two pieces overlap");
      }
      const copy = copies.get(piece.ptr);
      // The event of a freed piece is closed: a piece there now was allocated after all the GPU's pending work.
      assert(copy === undefined || !isUnderWay(copy), "it is reserved although a copy still uses it");
      copies.delete(piece.ptr);
      reserved.push({ piece, bytes: step.bytes });
      if (step.copy) copies.set(piece.ptr, piece.copy(stream, piece.ptr, buffer.ptr, step.bytes));
      assert(withPool - device.memoryInfo().free <= units * stagedFrom * 1.01 + (2 << 20), "more is kept than allowed");
    }
    staging.close();
    for (const { piece } of reserved) piece.release(); // UCX held these until now
    buffer.close();
    assertEquals(staging.reserve(buffer, stagedFrom), null);
    for (let i = 0; i < 5; i++) reclaim(); // the simulator answers queries late, too
    assert(device.memoryInfo().free >= withPool, "pieces were not freed");
    cuda.close();
  }));
});

test("only memory that needs a piece uses one: large, of a pool or managed, its stream not being captured", () => {
  const { device, from: stream } = simulated();
  const staging = new PoolStaging();
  opened.push(() => staging.close());
  const reserves = (buffer: MemoryBuffer, bytes: number) => {
    const piece = staging.reserve(buffer, bytes);
    assertEquals(staging.isFor(buffer, bytes), piece !== null);
    piece?.release();
    return piece !== null;
  };
  using pool = device.memory.allocate(size, { stream });
  using managed = new ManagedMemoryResource(device).allocate(size, { stream });
  using alone = new SynchronousMemoryResource(device).allocate(size, { stream });
  using host = new HostMemoryResource().allocate(size);
  assertEquals([pool, managed, alone, host].map((one) => reserves(one, size)), [true, true, false, false]);
  assertEquals([reserves(pool, stagedFrom), reserves(pool, stagedFrom - 1)], [true, false]);
  assertEquals(new PoolStaging(0).reserve(pool, size), null);
  assertEquals(new PoolStaging().isFor(pool, device.totalMemory / 16 + 1), false);
  stream.capture(() => assertEquals(reserves(pool, size), false)).close();
  assertEquals(reserves(pool, size), true);
});

test("a GPU whose memory is used up sends as UCX does", () => {
  using cuda = Cuda.simulate({ memory: 64 << 20 });
  const device = cuda.device(0);
  using stream = device.createStream();
  using pool = device.memory.allocate(8 << 20, { stream });
  const staging = new PoolStaging(32 << 20);
  const others: MemoryBuffer[] = [];
  assertThrows(() => {
    for (;;) others.push(new SynchronousMemoryResource(device).allocate(4 << 20));
  }, CudaError);
  assertEquals(staging.reserve(pool, 8 << 20), null);
  for (const other of others.splice(0, 4)) other.close();
  for (let i = 0; i < 5; i++) reclaim(); // the simulator answers queries late, too
  staging.reserve(pool, 8 << 20)?.release();
  assert(staging.reserve(pool, 8 << 20) !== null);
  staging.close();
  for (const other of others) other.close();
});

/** A scripted endpoint whose worker has pieces. */
function scene(seed = 0) {
  const gpu = simulated(seed);
  const staging = new PoolStaging();
  const scripted = openScripted({ cuda: staging });
  opened.push(() => {
    scripted.progress.stop(new TypeError("the test is over"), 0);
    staging.close();
  });
  return { ...gpu, ...scripted, staging };
}

/** The kinds of memory that are sent through pieces. */
const kinds: readonly ((device: CudaStream["device"]) => MemoryResource)[] = [
  (device) => device.memory,
  (device) => new ManagedMemoryResource(device),
];

for (const kind of kinds) {
  test(`a send has the bytes its stream wrote before, none written later: ${kind.toString().slice(12)}`, async () => {
    for (let seed = 0; seed < 8; seed++) {
      const { device, driver, from, other, ucp, endpoint } = scene(seed);
      using buffer = kind(device).allocate(size, { stream: from });
      const content = contentOf(seed, size);
      buffer.copyFrom(content, { stream: from });
      const send = endpoint.send(buffer);
      buffer.fill(0xdd, { stream: from }); // the copy has been enqueued by then
      while (!ucp.log.includes("ucp_tag_send_nbx")) await setImmediate();
      const at = ucp.memoryOf(1);
      assertNotEquals(at, buffer.ptr);
      assertEquals(bytesAt(at, size, other), content);
      buffer.close(); // freed when UCX is done with it
      const frees = () => driver.calls("cuMemFreeAsync") + driver.calls("cuMemFree_v2");
      const before = frees();
      ucp.finish(1);
      await send;
      for (let i = 0; i < 5; i++) reclaim(); // the simulator answers queries late, too
      assertEquals(frees(), before + 1);
    }
  });

  test(`a receive ends when the message, and no more, is in its memory: ${kind.toString().slice(12)}`, async () => {
    for (let seed = 0; seed < 8; seed++) {
      const { device, to, other, ucp, receiver, progress } = scene(seed);
      using buffer = kind(device).allocate(size, { stream: to });
      buffer.fill(0xee, { stream: to }); // the copy comes after it
      const receive = receiver.recv(buffer, none, null, plainTags);
      const at = ucp.memoryOf(1);
      assertNotEquals(at, buffer.ptr);
      const length = size - 1000 * seed;
      const content = contentOf(seed, length);
      writeTo(at, content, other);
      ucp.finish(1, 0, length);
      assertEquals((await receive).length, length);
      assertEquals(progress.cancelAll(new TypeError("no operation is in flight")), 0);
      const bytes = bytesAt(buffer.ptr, size, other);
      assertEquals(bytes.subarray(0, length), content);
      assert(bytes.subarray(length).every((byte) => byte === 0xee));
    }
  });
}

test("a receive in place ends with the message in its memory, whether it had arrived before or not", () => {
  for (const isHere of [true, false]) {
    const { device, to, other, ucp, receiver } = scene();
    using buffer = device.memory.allocate(size, { stream: to });
    const content = contentOf(7, size);
    const arrive = () => {
      writeTo(ucp.memoryOf(1), content, other);
      ucp.finish(1, 0, size);
      ucp.onProgress = null;
    };
    if (isHere) ucp.onBegin = arrive;
    else ucp.onProgress = arrive;
    assertEquals(receiver.recvSync(buffer, none, null, plainTags).length, size);
    assertEquals(bytesAt(buffer.ptr, size, other), content);
  }
});

test("a receive whose message had arrived before it began ends when the message is in its memory", async () => {
  const { device, to, other, ucp, receiver } = scene();
  using buffer = device.memory.allocate(size, { stream: to });
  const content = contentOf(8, size);
  ucp.onBegin = () => {
    writeTo(ucp.memoryOf(1), content, other);
    ucp.finish(1, 0, size);
  };
  assertEquals((await receiver.recv(buffer, none, null, plainTags)).length, size);
  assertEquals(bytesAt(buffer.ptr, size, other), content);
});

test("a receive that fails or is cancelled ends at once, and its piece is reused once no copy uses it", async () => {
  const { device, to, other, ucp, receiver, operations, staging } = scene();
  using buffer = device.memory.allocate(size, { stream: to });
  buffer.fill(0xee, { stream: to });
  to.synchronize();
  const failing = receiver.recv(buffer, none, null, plainTags);
  ucp.finish(1, -10, size); // UCS_ERR_MESSAGE_TRUNCATED
  await assertRejects(() => failing, Error, "ucp_tag_recv_nbx");
  assert(bytesAt(buffer.ptr, size, other).every((byte) => byte === 0xee), "something was copied");
  assertEquals(operations.inUse, 0);

  const end = new AbortController();
  const receive = receiver.recv(buffer, { signal: end.signal }, null, plainTags);
  const at = ucp.memoryOf(2);
  ucp.finish(2, 0, size);
  receiver.probe(0n, 0n); // starts the copy
  end.abort(new RangeError("enough"));
  await assertRejects(() => receive, RangeError, "enough");
  assertEquals(operations.inUse, 0);
  assertEquals(ucp.log.includes("ucp_request_cancel"), false); // UCX has completed it already
  const next = staging.reserve(buffer, size);
  assertNotEquals(next?.ptr, at); // its copy has not run
  to.synchronize();
  receiver.probe(0n, 0n); // finds the copy done
  assertEquals(operations.inUse, 0);
  const again = staging.reserve(buffer, size);
  assertEquals(again?.ptr, at);
  next?.release();
  again?.release();
});

test("a closed buffer is an error before any operation or piece is allocated", async () => {
  const { device, driver, from, to, endpoint, receiver, operations } = scene();
  const buffer = device.memory.allocate(size, { stream: from });
  buffer.close();
  await assertRejects(() => endpoint.send(buffer), TypeError, "closed");
  const other = device.memory.allocate(size, { stream: to });
  other.close();
  await assertRejects(() => receiver.recv(other, none, null, plainTags), TypeError, "closed");
  assertEquals([operations.inUse, driver.calls("cuMemAlloc_v2")], [0, 0]);
});

test("once UCX has received GPU memory, a context is current whenever it makes progress", async () => {
  const { cuda, device, driver, endpoint, progress, ucp } = scene();
  const { cuCtxGetCurrent, cuCtxSetCurrent } = cuda.driver.context;
  using arena = new NativeArena();
  const out = arena.out("ptr");
  const current: bigint[] = [];
  let news = () => {};
  ucp.onProgress = () => {
    assertEquals(cuCtxGetCurrent(out.$address), 0);
    current.push(out.value);
    news();
  };
  /** Calls UCX without a current context, as a library leaves the thread that pops its own. */
  const seen = async (way: () => unknown) => {
    current.length = 0;
    assertEquals(cuCtxSetCurrent(0n), 0);
    await way();
    return [...new Set(current)];
  };
  assertEquals(await seen(() => progress.poll()), [0n]); // host memory needs no context
  using memory = new SynchronousMemoryResource(device).allocate(8);
  const sends = [endpoint.send(memory)];
  const ways: Record<string, () => unknown> = {
    "a turn of the event loop": async () => {
      while (current.length === 0) await setImmediate();
    },
    poll: () => progress.poll(),
    "a microtask": async () => {
      while (current.length === 0) { // the event loop has turned less than a millisecond ago
        await setImmediate();
        current.length = 0;
        sends.push(endpoint.send(memory));
        assertEquals(cuCtxSetCurrent(0n), 0);
        await Promise.resolve();
      }
    },
    "a call in place": () => {
      ucp.onBegin = () => cuCtxSetCurrent(0n);
      news = () => ucp.finish(sends.length + 1);
      endpoint.sendSync(memory);
      news = () => {};
    },
  };
  for (const [name, way] of Object.entries(ways)) assertEquals(await seen(way), [device.context], name);
  driver.failNth("cuCtxGetCurrent", 1, CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ucp.onProgress = null;
  progress.poll(); // no caller of it could handle an error
  for (const [i] of sends.entries()) ucp.finish(i + 1);
  await Promise.all(sends);
});

test("a message that arrives while the stream is captured is an error, and adds nothing to the graph", async () => {
  const { device, to, ucp, receiver, operations } = scene();
  using buffer = device.memory.allocate(size, { stream: to });
  const receive = receiver.recv(buffer, none, null, plainTags);
  const graph = to.capture(() => {
    ucp.finish(1, 0, size);
    receiver.probe(0n, 0n);
  });
  await assertRejects(() => receive, TypeError, "is being captured");
  assertEquals([graph.nodes.length, operations.inUse], [0, 0]);
  graph.close();
});

test("streams wake up a sleeping worker, once each, and copies are settled in the order of each stream", async () => {
  const { device, driver, from, to } = simulated();
  const staging = new PoolStaging();
  opened.push(() => staging.close());
  using buffer = device.memory.allocate(size, { stream: from });
  const copies = new PendingCopies();
  const ended: string[] = [];
  const made: PendingCopy[] = [];
  const pieces = [from, to, from, to].map((stream, i) => {
    const piece = staging.reserve(buffer, size);
    assert(piece !== null);
    const copy = piece.copy(stream, piece.ptr, buffer.ptr, size);
    copies.add(copy, (failure) => ended.push(`${i} ${failure}`));
    made.push(copy);
    return piece;
  });
  assertEquals([copies.isEmpty, copies.areDueWithin(1e6), copies.areDueWithin(-1)], [false, true, false]);
  while (made[0]?.event.isDone !== true); // nothing else has run
  assertEquals([copies.look(), ended], [1, ["0 null"]]);
  let woken = 0;
  await new Promise<void>((resolve) => {
    const wake = () => ++woken === 2 && resolve();
    copies.wakeBy(wake);
    copies.wakeBy(wake);
  });
  assertEquals(copies.look(), 3);
  assertEquals([copies.isEmpty, woken, driver.calls("cuLaunchHostFunc")], [true, 2, 2]);
  assertEquals(ended.toSorted(), ["0 null", "1 null", "2 null", "3 null"]);
  const asked = driver.calls("cuEventQuery");
  assertEquals(made.map((copy) => copy.outcome()), [null, null, null, null]);
  assertEquals(driver.calls("cuEventQuery"), asked, "CUDA was queried for a known outcome");
  assert(ended.indexOf("0 null") < ended.indexOf("2 null") && ended.indexOf("1 null") < ended.indexOf("3 null"));
  for (const piece of pieces) piece.release();
});
