/**
 * Active messages whose data have arrived, received into GPU memory: by copies of ours, in the order of its stream. On
 * simulated GPUs, with a libucp that takes the data back as soon as it may.
 */
import { assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  type CudaStream,
  DType,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  type MemoryResource,
  PinnedMemoryResource,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { UcxActiveMessage } from "../../src/ucx/active_messages/active_messages.ts";
import { MessageQueue } from "../../src/ucx/active_messages/message_queue.ts";
import { writeArrayHeader } from "../../src/ucx/array_header.ts";
import { recvArray } from "../../src/ucx/arrays.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { PoolStaging } from "../../src/ucx/pool_staging.ts";
import { Progress } from "../../src/ucx/progress.ts";
import { check, fc } from "../support/property.ts";
import { contentOf } from "../support/ucx_messages.ts";
import { scriptedResources, ScriptedUcp } from "./scripted_ucp.ts";

/** A simulated device, and messages that have arrived. */
function scene(schedule: "latest" | "random", seed = 0, staging = new PoolStaging(0)) {
  const cuda = Cuda.simulate({ schedule, seed, devices: 1 });
  const device = cuda.device(0);
  const [home, other] = [device.createStream({ nonBlocking: true }), device.createStream({ nonBlocking: true })];
  const ucp = new ScriptedUcp();
  const resources = scriptedResources(ucp);
  const lent = new Map<bigint, MemoryBuffer>();
  let released = 0;
  Object.defineProperty(ucp.functions.activeMessage, "ucp_am_data_release", {
    value: (_: bigint, data: bigint) => {
      released++;
      lent.get(data)?.bytes().fill(0xdd); // UCX has other uses for it
    },
  });
  const progress = new Progress(resources, "adaptive", null);
  const context = { resources, cuda: staging, progress, deliver: () => true, forget: () => {} };
  const arrived = (content: Uint8Array<ArrayBuffer>, place: "borrowed" | "none", header = new Uint8Array(0)) => {
    const memory = new HostMemoryResource().allocate(content.length);
    memory.bytes().set(content);
    lent.set(memory.ptr, memory);
    const data = place === "borrowed"
      ? { place, data: memory.ptr, bytes: null }
      : { place, data: 0n, bytes: content.slice() };
    return new UcxActiveMessage(context, header, content.length, data);
  };
  const atSender = (length: number) =>
    new UcxActiveMessage(context, new Uint8Array(0), length, { place: "sender", data: 7n, bytes: null });
  const close = () => {
    progress.stop(null);
    for (const memory of lent.values()) memory.close();
    for (const stream of [home, other]) stream.close();
    cuda.close();
  };
  return {
    device,
    home,
    other,
    arrived,
    atSender,
    operations: resources.operations,
    released: () => released,
    close,
  };
}

/** The bytes of a buffer now, whatever work streams still have pending on it. */
function bytesNow({ ptr, size, device }: MemoryBuffer, beside: CudaStream): Uint8Array {
  if (device === null) return new Uint8Array(ffiPort().memory(ptr, size).slice(0));
  using memory = MemoryBuffer.fromPointer(ptr, size, { device: beside.device });
  using sink = new HostMemoryResource().allocate(size);
  sink.copyFrom(memory, { stream: beside });
  beside.synchronize();
  return sink.bytes().slice();
}

/** Kinds of memory that may be in one list: UCX takes a list as memory of one type. */
const kinds = fc.oneof(
  fc.array(fc.constantFrom("host" as const, "pinned" as const), { minLength: 1, maxLength: 4 }),
  fc.array(fc.constant("device" as const), { minLength: 1, maxLength: 4 }),
  fc.array(fc.constantFrom("pool" as const, "managed" as const), { minLength: 1, maxLength: 4 }),
);

test("data that have arrived are received into memory of any kind, in order with its stream, for any stream", async () => {
  await check(
    fc.asyncProperty(
      kinds,
      fc.array(fc.nat(5000), { minLength: 4, maxLength: 4 }),
      fc.boolean(),
      fc.constantFrom("borrowed", "none"),
      fc.constantFrom("latest", "random"),
      fc.nat(),
      fc.nat(100),
      async (names, sizes, hasHome, place, schedule, seed, spare) => {
        const { device, home, other, arrived, operations, released, close } = scene(schedule, seed);
        const resources: Readonly<Record<typeof names[number], MemoryResource>> = {
          host: new HostMemoryResource(),
          pinned: new PinnedMemoryResource(device),
          managed: new ManagedMemoryResource(device),
          device: new SynchronousMemoryResource(device),
          pool: device.memory,
        };
        const buffers = names.map((name, i) => {
          const isOrdered = name === "pool" || hasHome;
          const buffer = resources[name].allocate(sizes[i] ?? 0, isOrdered ? { stream: home } : {});
          if (buffer.device === null) buffer.bytes().fill(0xee);
          else buffer.fill(0xee, { stream: home }); // with a home, only the receive waits for it
          if (buffer.stream === null) home.synchronize();
          return buffer;
        });
        const room = buffers.reduce((sum, { size }) => sum + size, 0);
        const content = contentOf(seed, Math.max(0, room - spare));
        const message = arrived(content, place);
        const [only] = buffers;
        await message.recv(buffers.length === 1 && only !== undefined ? only : buffers);
        const got = buffers.flatMap((buffer) => [...bytesNow(buffer, other)]);
        assertEquals(got, [...content, ...new Array<number>(room - content.length).fill(0xee)]);
        assertEquals([operations.inUse, released()], [0, place === "borrowed" ? 1 : 0]);
        for (const buffer of buffers) buffer.close();
        close();
      },
    ),
    150,
  );
});

// It was to be received there as into a real GPU's memory, which is refused.
test("an array comes to a simulated GPU by way of the host where UCX uses real ones", async () => {
  const { device, home, other, arrived, close } = scene("latest", 0, new PoolStaging(0, () => false));
  const content = contentOf(1, 24);
  for (const place of [new ManagedMemoryResource(device), new SynchronousMemoryResource(device), device.memory]) {
    const queue = new MessageQueue<UcxActiveMessage>();
    queue.push(arrived(content, "none", writeArrayHeader({ dtype: DType.from("float64"), shape: [3] })));
    using array = await recvArray(queue, { place, stream: home }, () => new Error("no array"));
    assertEquals([...bytesNow(array.buffer, other)], [...content], place.constructor.name);
  }
  close();
});

// It had no owner: a peer that was killed left it pending for ever.
test("a receive of data at the sender ends with its endpoint, and none begins later; arrived data are received", async () => {
  const { arrived, atSender, close } = scene("latest");
  const over = new AbortController();
  const [first, second, third] = [atSender(8), atSender(8), arrived(contentOf(2, 8), "none")];
  for (const message of [first, second, third]) message.endsWith(over.signal);
  const received = first.recv(new Uint8Array(8));
  const gone = new UcxError("ucp_worker_progress", -25);
  await Promise.resolve();
  over.abort(gone);
  await assertRejects(() => received, UcxError, "ucp_worker_progress");
  await assertRejects(() => second.recv(new Uint8Array(8)), UcxError, "ucp_worker_progress");
  assertEquals(await third.bytes(), contentOf(2, 8));
  second.release();
  close();
});
