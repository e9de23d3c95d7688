/**
 * Messages from and to memory of every place: on a real GPU, with a UCX that knows CUDA, and on a simulated one, whose
 * memory is real to the host.
 *
 * @module
 */
import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import type { CudaDevice, CudaStream, MemoryResource, UcxEndpoint, UcxWorker } from "../../mod.ts";
import {
  DeviceMemoryResource,
  HostMemoryResource,
  ManagedMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
  Ucx,
} from "../../mod.ts";
import { contentOf } from "../support/ucx_messages.ts";
import type { Behaviour, Root } from "../support/cuda_root.ts";

/** Where memory is. */
export interface Place {
  readonly name: "host" | "pinned" | "managed" | "device" | "pool";
  readonly resource: MemoryResource;
}

/** All places whose memory can be sent: not a simulated GPU's. The host's own has no home stream. */
export function placesOf(device: CudaDevice, { hasCuda }: Ucx): Place[] {
  return [
    { name: "host", resource: new HostMemoryResource() },
    { name: "pinned", resource: new PinnedMemoryResource(device) },
    { name: "managed", resource: new ManagedMemoryResource(device) },
    ...(hasCuda && !device.isSimulated
      ? [
        { name: "device", resource: new SynchronousMemoryResource(device) } as const,
        { name: "pool", resource: new DeviceMemoryResource(device) } as const,
      ]
      : []),
  ];
}

/** Writes to memory on its home stream, without waiting; host memory without a home is written at once. */
export function write(buffer: MemoryBuffer, content: Uint8Array, stream: CudaStream): void {
  if (buffer.stream === null) buffer.bytes().set(content);
  else buffer.copyFrom(content, { stream });
}

/** The contents of a buffer once all work enqueued on a stream is done. */
export function bytesOf(buffer: MemoryBuffer, stream: CudaStream): Uint8Array {
  using sink = new HostMemoryResource().allocate(buffer.size);
  sink.copyFrom(buffer, { stream });
  stream.synchronize();
  return sink.bytes().slice();
}

/** Fails unless the bytes are the expected ones. */
export function assertBytes(bytes: Uint8Array, expected: Uint8Array, what: string): void {
  assertEquals(Buffer.compare(bytes, expected), 0, `other bytes than the ${expected.length} expected arrived: ${what}`);
}

/** Two workers, and a device with a stream for each of them. */
async function inScene(
  root: Root,
  act: (scene: {
    readonly ucx: Ucx;
    readonly from: CudaStream;
    readonly to: CudaStream;
    readonly device: CudaDevice;
    readonly endpoint: UcxEndpoint;
    readonly sender: UcxWorker;
    readonly receiver: UcxWorker;
  }) => Promise<void>,
): Promise<void> {
  using cuda = root.open();
  const device = cuda.device(0);
  using from = device.createStream({ nonBlocking: true });
  using to = device.createStream({ nonBlocking: true });
  using ucx = Ucx.open();
  await using sender = ucx.createWorker();
  await using receiver = ucx.createWorker();
  const endpoint = await sender.connect(receiver.address);
  await act({ ucx, from, to, device, endpoint, sender, receiver });
}

const sizes = [0, 1, 8, 4096, 100_000, 1 << 20];

/** The behaviours. */
export const ucxBehaviours: readonly Behaviour[] = [
  {
    name: "memory of every place is sent to every place",
    devices: 1,
    run: (root) =>
      inScene(root, async ({ ucx, device, from, to, endpoint, receiver }) => {
        const places = placesOf(device, ucx);
        for (const size of sizes) {
          for (const [i, source] of places.entries()) {
            for (const target of places) {
              using sent = source.resource.allocate(size, { stream: from });
              using got = target.resource.allocate(size, { stream: to });
              const content = contentOf(size + i, size);
              write(sent, content, from); // only the send waits for it
              write(got, new Uint8Array(size).fill(0xee), to); // only the receive waits for it
              const receive = receiver.recv(got, { tag: 5n });
              await endpoint.send(sent, { tag: 5n });
              assertEquals(await receive, { length: size, tag: 5n });
              assertBytes(bytesOf(got, to), content, `${source.name} to ${target.name}`);
            }
          }
        }
      }),
  },

  {
    name: "UCX is opened again after CUDA was used with it and closed: no destroyed context stays current",
    devices: 1,
    run: async (root) => {
      for (let i = 0; i < 2; i++) {
        await inScene(root, async ({ ucx, device, from, endpoint, receiver }) => {
          for (const place of placesOf(device, ucx)) {
            using sent = place.resource.allocate(8, { stream: from });
            const [content, got] = [contentOf(i, 8), new Uint8Array(8)];
            write(sent, content, from);
            await Promise.all([receiver.recv(got), endpoint.send(sent)]);
            assertBytes(got, content, place.name);
          }
        });
        using again = Ucx.open(); // UCX 1.21 crashed: it works in the context that is current
        assert(again.version !== "");
      }
    },
  },

  {
    name: "a send includes work enqueued before it, and work after a receive sees it, without a wait of the host",
    devices: 1,
    run: (root) =>
      inScene(root, async ({ ucx, device, from, to, endpoint, receiver }) => {
        const size = Math.min(root.bytes, 16 << 20);
        using other = new SynchronousMemoryResource(device).allocate(root.bytes);
        for (const place of placesOf(device, ucx).filter(({ name }) => name !== "host")) {
          using sent = place.resource.allocate(size, { stream: from });
          using got = place.resource.allocate(size, { stream: to });
          using after = place.resource.allocate(size, { stream: to });
          for (let round = 1; round <= 3; round++) {
            for (let i = 0; i < 20; i++) got.fill(100 + i, { stream: to });
            // To be waited for, even on the fastest GPU: last, because a host may be slow to enqueue.
            for (let i = 0; i < 20; i++) other.fill(i, { stream: from });
            sent.fill(round, { stream: from });
            if (root.isSlow) assert(!from.isDone);
            await Promise.all([receiver.recv(got), endpoint.send(sent)]);
            sent.fill(0xdd, { stream: from }); // the sent buffer belongs to its owner again
            after.copyFrom(got, { stream: to });
            assertBytes(bytesOf(after, to), new Uint8Array(size).fill(round), `${place.name}, round ${round}`);
          }
        }
      }),
  },

  {
    name: "an array that is not contiguous is sent as its elements in C order, as they are when the send's turn comes",
    devices: 1,
    run: (root) =>
      inScene(root, async ({ ucx, device, from, to, endpoint, receiver }) => {
        const [rows, columns] = [50, 70];
        const content = contentOf(3, rows * columns);
        const turned = Uint8Array.from({ length: rows * columns }, (_, i) => {
          const [column, row] = [Math.floor(i / rows), i % rows];
          return content[row * columns + column] ?? 0;
        });
        for (const place of placesOf(device, ucx)) {
          using sent = place.resource.allocate(rows * columns, { stream: from });
          using got = place.resource.allocate(rows * columns, { stream: to });
          write(sent, content, from);
          const matrix = StridedMemoryView.fromBuffer(sent, { shape: [rows, columns], dtype: "uint8" });
          await Promise.all([receiver.recv(got), endpoint.send(matrix.permuted([1, 0]))]);
          assertBytes(bytesOf(got, to), turned, place.name);
        }
      }),
  },

  {
    name: "arrays are received in memory of the wanted place, in order with its stream",
    devices: 1,
    run: (root) =>
      inScene(root, async ({ device, to, endpoint, receiver }) => {
        const places = [new PinnedMemoryResource(device), new SynchronousMemoryResource(device), device.memory];
        for (const length of [3, 50_000]) {
          const values = Float64Array.from({ length }, (_, i) => i / 3);
          for (const place of places) {
            const sent = endpoint.sendArray(values);
            using array = await receiver.recvArray({ place, stream: to });
            await sent;
            assertEquals([array.dtype.name, [...array.shape]], ["float64", [length]]);
            assertBytes(bytesOf(array.buffer, to), new Uint8Array(values.buffer), place.constructor.name);
          }
        }
      }),
  },

  {
    name: "a received array is there for any stream, also where its memory has no home",
    devices: 1,
    run: (root) =>
      inScene(root, async ({ ucx, device, to, endpoint, receiver }) => {
        for (const { name, resource } of placesOf(device, ucx)) {
          for (const length of [3, 50_000]) {
            const values = Float64Array.from({ length }, (_, i) => i / 3);
            const sent = endpoint.sendArray(values);
            using array = await receiver.recvArray({ place: resource });
            await sent;
            // As another library's, without a home: so nothing is waited for but its own stream.
            const where = array.buffer.device === null ? {} : { device };
            using stranger = MemoryBuffer.fromPointer(array.ptr, array.nbytes, where);
            assertBytes(bytesOf(stranger, to), new Uint8Array(values.buffer), name);
          }
        }
      }),
  },

  {
    name: "messages of several parts, active messages and remote memory, of every place",
    devices: 1,
    run: (root) =>
      inScene(root, async ({ ucx, device, from, to, endpoint, receiver }) => {
        for (const place of placesOf(device, ucx)) {
          for (const size of [100, 1 << 20]) {
            using sent = place.resource.allocate(size, { stream: from });
            const content = contentOf(size, size);
            write(sent, content, from);
            const parts = receiver.recvMany({ place: place.resource, stream: to });
            await endpoint.sendMany([sent, content], {});
            for (const view of await parts) {
              assertBytes(bytesOf(view.buffer, to), content, `parts, ${place.name}`);
              view.close();
            }

            const sending = endpoint.sendMessage(sent, { header: place.name });
            const { value: message } = await receiver.messages()[Symbol.asyncIterator]().next();
            assert(message !== undefined);
            assertEquals([message.text, message.length], [place.name, size]);
            using got = place.resource.allocate(size, { stream: to });
            write(got, new Uint8Array(size).fill(0xee), to); // only the receive waits for it
            await message.recv(got);
            assertBytes(bytesOf(got, to), content, `message, ${place.name}`);
            await sending;

            using region = receiver.register(got);
            using remote = endpoint.remote(region.key);
            const other = contentOf(size + 1, size);
            write(sent, other, from);
            await endpoint.put(sent, remote);
            await endpoint.flush();
            assertBytes(bytesOf(got, to), other, `put, ${place.name}`);
            write(sent, new Uint8Array(size), from);
            await endpoint.get(sent, remote);
            assertBytes(bytesOf(sent, from), other, `get, ${place.name}`);
          }
        }
      }),
  },

  {
    name: "the bytes of a stream go from memory of every place to memory of every place",
    devices: 1,
    run: (root) =>
      inScene(root, async ({ ucx, device, from, to, endpoint, sender, receiver }) => {
        const back = await receiver.connect(sender.address);
        const places = placesOf(device, ucx);
        for (const size of sizes.filter((size) => size > 0)) {
          for (const [i, source] of places.entries()) {
            for (const target of places) {
              for (const isWaiting of [true, false]) { // whether the receive is there first
                using sent = source.resource.allocate(size, { stream: from });
                using got = target.resource.allocate(size, { stream: to });
                const content = contentOf(size + i, size);
                write(sent, content, from); // only the send waits for it
                write(got, new Uint8Array(size).fill(0xee), to); // only the receive waits for it
                const first = isWaiting ? back.rawStream.recvAll(got) : endpoint.rawStream.send(sent);
                await Promise.all([first, isWaiting ? endpoint.rawStream.send(sent) : back.rawStream.recvAll(got)]);
                assertBytes(bytesOf(got, to), content, `${source.name} to ${target.name}`);
              }
            }
          }
        }
      }),
  },
];
