/** Memory and events go from process to process on real GPUs. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { type IpcHandle, MemoryChannel, UnixListener, type UnixSocket } from "../../src/public/sharing.ts";
import {
  Cuda,
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  type MemoryBuffer,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { drainFrees } from "../../src/order/deferred_free.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { type Running, type Runtime, runtimes, startIn } from "../support/runtimes.ts";
import type { Offer, Outcome } from "./ipc_child.ts";
import { until } from "../support/until.ts";

const child = new URL("./ipc_child.ts", import.meta.url);
const example = new URL("../../examples/share_gpu_memory.ts", import.meta.url);
const [own] = runtimes;
let names = 0;

function socketName(): string {
  return `@causeway-ipc-${process.pid}-${names++}`;
}

/** Starts the other process and waits for it to connect; if it ends first, reports what it printed. */
async function meet(what: string, runtime: Runtime): Promise<{ readonly socket: UnixSocket; readonly other: Running }> {
  const path = socketName();
  using listener = UnixListener.listen(path);
  const other = startIn(runtime, child, [what, path]);
  const ended = other.printed.then((text) => {
    throw new Error(`${what} ended before it connected: ${text}`);
  });
  return { socket: await Promise.race([listener.accept(), ended]), other };
}

async function hear(socket: UnixSocket, other: Running): Promise<unknown> {
  const message = await socket.receive();
  if (message !== null) return JSON.parse(new TextDecoder().decode(message.data));
  await other.printed; // reports why it ended
  throw new Error("The other process ended without a message");
}

/** Driver errors where the machine, or its container, does not allow processes to share memory. */
const forbidden = new Set([
  "CUDA_ERROR_NOT_SUPPORTED",
  "CUDA_ERROR_NOT_PERMITTED",
  "CUDA_ERROR_OPERATING_SYSTEM",
  "CUDA_ERROR_MAP_FAILED",
]);

/** Offers one of everything. The caller closes the result, which keeps it. */
async function offer(socket: UnixSocket, cuda: Cuda, fill: number): Promise<Disposable & { buffers: MemoryBuffer[] }> {
  const device = cuda.device(0);
  const stream = device.createStream();
  const pool = new DeviceMemoryResource(device, { shareable: true });
  const inPool = pool.allocate(2 ** 26, { stream });
  const plain = new SynchronousMemoryResource(device).allocate(2 ** 26, { stream });
  for (let i = 0; i <= 50; i++) for (const one of [inPool, plain]) one.fill(i === 50 ? fill : i, { stream });
  const ready = device.createEvent({ interprocess: true });
  stream.record(ready);
  const what: Offer = {
    pool: inPool.exportDescriptor(),
    memory: plain.exportDescriptor(),
    event: ready.exportHandle(),
  };
  using file = pool.exportPool();
  await socket.send(new TextEncoder().encode(JSON.stringify(what)), [file]);
  return {
    buffers: [inPool, plain],
    [Symbol.dispose]() {
      for (const one of [inPool, plain, ready, pool, stream]) one.close();
    },
  };
}

/** What this machine does not allow, with the driver's own error codes; null if it allows everything. */
async function probe(): Promise<string | null> {
  const missing = missingGpus();
  if (missing !== null || own === undefined) return missing;
  using cuda = Cuda.open();
  const { socket, other } = await meet("probe", own);
  let outcomes: Record<string, Outcome>;
  try {
    using _offered = await offer(socket, cuda, 1);
    outcomes = await hear(socket, other) as Record<string, Outcome>;
    await other.printed;
  } catch (error) {
    if (!(error instanceof CudaError) || !forbidden.has(error.codeName)) throw error;
    return `this machine lets no process export memory: ${error.message}`;
  } finally {
    socket.close();
  }
  const refused = Object.entries(outcomes).flatMap(([what, outcome]) =>
    "refused" in outcome && forbidden.has(outcome.refused) ? [`${what}: ${outcome.refused}`] : []
  );
  return refused.length === 0 ? null : `this machine lets no other process import ${refused.join(", ")}`;
}

const missing = await probe();

/** Fails unless a pool of this process has no memory allocated any more. */
function assertEmpty({ pool }: DeviceMemoryResource, cuda: Cuda): void {
  drainFrees();
  cuda.device(0).synchronize();
  assertEquals(pool.use.used, 0, "bytes that are still allocated");
}

for (const runtime of runtimes) {
  const lacking = missing ?? runtime.missing;

  test(
    ...needs(
      lacking,
      `memory and an event, handed over one by one to ${runtime.name}, are read, written and released`,
    ),
    async () => {
      using cuda = Cuda.open();
      const device = cuda.device(0);
      const { socket, other } = await meet("explicit", runtime);
      using offered = await offer(socket, cuda, 0x22);
      const answer = await hear(socket, other) as {
        first: Record<string, number[]>;
        samePlace: boolean[];
        done: IpcHandle;
      };
      assertEquals(answer.first, { pool: [0x22], memory: [0x22] }, "what the other process read");
      assertEquals(answer.samePlace, [true, true], "importing twice gives the same address");
      using done = device.importEvent(answer.done);
      using stream = device.createStream();
      stream.wait(done);
      using sink = new HostMemoryResource().allocate(2 ** 26);
      for (const [i, expected] of [0x33, 0x44].entries()) {
        offered.buffers[i]?.copyTo(sink, { stream });
        stream.synchronize();
        assertEquals([...new Set(sink.bytes())], [expected], "what the other process wrote");
      }
      socket.close();
      await other.printed;
    },
  );

  test(
    ...needs(lacking, `a channel to ${runtime.name} keeps the order both ways, while the memory goes round`),
    async () => {
      using cuda = Cuda.open();
      const device = cuda.device(0);
      const { socket, other } = await meet("user", runtime);
      const channel = new MemoryChannel(socket, cuda);
      using stream = device.createStream();
      using pool = new DeviceMemoryResource(device, { shareable: true });
      const plain = new SynchronousMemoryResource(device);
      using slow = plain.allocate(2 ** 30, { stream });
      for (let round = 1; round <= 30; round++) {
        const buffer = (round % 5 === 0 ? plain : pool).allocate(2 ** 24, { stream });
        buffer.fill(0xee, { stream });
        // Slow in every other round, for longer than the message takes; in the others the other process is as slow.
        if (round % 2 === 1) { for (let i = 0; i < 40; i++) slow.fill(i, { stream }); }
        buffer.fill(round, { stream });
        await channel.send({ buffer, round });
        buffer.close(); // the next round gets this memory as soon as the other process is done with it
        assertEquals(await channel.receive(), "closed"); // but its stream may not have reached it
      }
      await channel.send("what came");
      const right = Array.from({ length: 30 }, (_, i) => ({ round: i + 1, wrong: -1 }));
      assertEquals(await channel.receive(), right, "the first wrong byte of each round");
      channel.close();
      await other.printed;
      await until(() => channel.shared === 0);
      assertEquals(channel.shared, 0, "buffers that were not returned");
      assertEmpty(pool, cuda);
    },
  );
}

test(...needs(missing, "an importer that is killed has released everything"), async () => {
  assert(own !== undefined);
  using cuda = Cuda.open();
  const { socket, other } = await meet("dies", own);
  const channel = new MemoryChannel(socket, cuda);
  using stream = cuda.device(0).createStream();
  using pool = new DeviceMemoryResource(cuda.device(0), { shareable: true });
  const buffer = pool.allocate(2 ** 24, { stream });
  await channel.send({ buffer, round: 1 });
  assertEquals(await channel.receive(), "here");
  buffer.close();
  assertEquals([channel.shared, pool.pool.use.used], [1, 2 ** 24]);
  other.child.kill("SIGKILL");
  assertEquals(await channel.receive(), undefined);
  assertEquals(channel.shared, 0);
  channel.close();
  assertEmpty(pool, cuda);
});

test(...needs(missing, "when the owner is killed its memory can be released, and the GPU used"), async () => {
  assert(own !== undefined);
  using cuda = Cuda.open();
  const { socket, other } = await meet("owner", own);
  const channel = new MemoryChannel(socket, cuda);
  using stream = cuda.device(0).createStream();
  using sink = new HostMemoryResource().allocate(2 ** 20);
  const buffer = await channel.receive({ stream }) as MemoryBuffer;
  buffer.copyTo(sink, { stream });
  stream.synchronize();
  assertEquals([...new Set(sink.bytes())], [0x5a]);
  other.child.kill("SIGKILL");
  assertEquals(await channel.receive(), undefined);
  buffer.close();
  channel.close();
  stream.synchronize();
  using mine = cuda.device(0).memory.allocate(2 ** 20, { stream });
  mine.fill(0x11, { stream });
  mine.copyTo(sink, { stream });
  stream.synchronize();
  assertEquals([...new Set(sink.bytes())], [0x11]);
});

test(...needs(missing ?? missingGpus(2), "memory of another device is refused by name"), () => {
  using cuda = Cuda.open();
  const [device, wrong] = [cuda.device(0), cuda.device(1)];
  using plain = new SynchronousMemoryResource(device).allocate(64);
  using event = device.createEvent({ interprocess: true });
  const named = "which is device 0 here";
  assertThrows(
    () => new SynchronousMemoryResource(wrong).importBuffer(plain.exportDescriptor()),
    RangeError,
    named,
  );
  assertThrows(() => wrong.importEvent(event.exportHandle()), RangeError, named);
});

test(...needs(missing, "examples/share_gpu_memory.ts does what it says, in each pair of runtimes"), async () => {
  for (const owner of runtimes) {
    for (const user of runtimes) {
      if (owner.missing !== null || user.missing !== null) continue;
      const path = socketName();
      const started = [startIn(owner, example, ["owner", path]), startIn(user, example, ["user", path])];
      const printed = await Promise.all(started.map((one) => one.printed));
      assertEquals(printed, [
        "owner: 0 1 4 9 16 25 36 49, by way of 3 places\n",
        "user: squared 8 frames where they were\n",
      ], `${owner.name} to ${user.name}`);
    }
  }
});
