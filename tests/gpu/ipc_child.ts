/** The other process of `ipc_test.ts`: does what its first argument says, over the socket that its second names. */
import process from "node:process";
import { type BufferDescriptor, type IpcHandle, MemoryChannel, UnixSocket } from "../../src/public/sharing.ts";
import {
  Cuda,
  CudaError,
  DeviceMemoryResource,
  HostMemoryResource,
  type MemoryBuffer,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { readBuffer } from "../support/buffers.ts";

/** What the explicit way sends beside the pool's file descriptor. */
export interface Offer {
  readonly pool: BufferDescriptor;
  readonly memory: BufferDescriptor;
  readonly event: IpcHandle;
}

/** The outcome of an import: the error code's name if the driver refused it. */
export type Outcome = { readonly refused: string } | { readonly ok: true };

/** Sends a value to the other end of a socket, as JSON. */
export async function tell(socket: UnixSocket, value: unknown): Promise<void> {
  await socket.send(new TextEncoder().encode(JSON.stringify(value)));
}

function outcome(act: () => Disposable): Outcome {
  try {
    act()[Symbol.dispose]();
    return { ok: true };
  } catch (error) {
    if (error instanceof CudaError) return { refused: error.codeName };
    throw error;
  }
}

/** The distinct bytes of a buffer, after the work enqueued on its home stream. */
function valuesOf(buffer: MemoryBuffer, cuda: Cuda): number[] {
  return [...new Set(readBuffer(buffer, cuda))];
}

async function explicitly(path: string, what: string): Promise<void> {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using socket = await UnixSocket.connect(path, { timeout: 30_000 });
  const message = await socket.receive({ maxDescriptors: 1 });
  const [file] = message?.descriptors ?? [];
  if (message === null || file === undefined) throw new Error("Nothing was offered");
  const offer = JSON.parse(new TextDecoder().decode(message.data)) as Offer;
  if (what === "probe") {
    const pool = outcome(() => {
      const imported = DeviceMemoryResource.importPool(device, file);
      imported.importBuffer(offer.pool).close();
      return imported;
    });
    const memory = outcome(() => new SynchronousMemoryResource(device).importBuffer(offer.memory));
    const event = outcome(() => device.importEvent(offer.event));
    await tell(socket, { pool, memory, event });
    return;
  }
  using stream = device.createStream();
  using pool = DeviceMemoryResource.importPool(device, file);
  file.close();
  using ready = device.importEvent(offer.event);
  stream.wait(ready);
  const buffers = [
    pool.importBuffer(offer.pool, { stream }),
    pool.importBuffer(offer.pool, { stream }),
    new SynchronousMemoryResource(device).importBuffer(offer.memory, { stream }),
    new SynchronousMemoryResource(device).importBuffer(offer.memory, { stream }),
  ];
  const [one, same, other, again] = buffers;
  if (one === undefined || same === undefined || other === undefined || again === undefined) throw new Error();
  const first = { pool: valuesOf(one, cuda), memory: valuesOf(other, cuda) };
  const samePlace = [one.ptr === same.ptr, other.ptr === again.ptr];
  one.close();
  other.close();
  same.fill(0x33, { stream }); // memory imported twice is still mapped after one close
  again.fill(0x44, { stream });
  same.close();
  again.close();
  using done = device.createEvent({ interprocess: true });
  stream.record(done);
  await tell(socket, { first, samePlace, done: done.exportHandle() });
  await socket.receive(); // the event lives until the other side has waited for it
}

async function byChannel(path: string, what: string): Promise<void> {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using channel = await MemoryChannel.connect(path, cuda, { timeout: 30_000 });
  if (what === "owner") {
    using stream = device.createStream();
    using pool = new DeviceMemoryResource(device, { shareable: true });
    using buffer = pool.allocate(2 ** 20, { stream });
    buffer.fill(0x5a, { stream });
    await channel.send(buffer);
    await channel.receive(); // killed meanwhile
    return;
  }
  using stream = device.createStream();
  using slow = new SynchronousMemoryResource(device).allocate(2 ** 30, { stream });
  const copies: { readonly round: number; readonly copy: MemoryBuffer }[] = [];
  for (;;) {
    const value = await channel.receive({ stream }) as { buffer: MemoryBuffer; round: number } | undefined;
    if (value === undefined || value.buffer === undefined) break;
    if (what === "dies") {
      await channel.send("here");
      await channel.receive(); // killed meanwhile, with the buffer open
    }
    const { buffer, round } = value;
    // Its owner gets it back when the message arrives, and must not use it before this stream has read it.
    if (round % 2 === 0) { for (let i = 0; i < 40; i++) slow.fill(i, { stream }); }
    const copy = device.memory.allocate(2 ** 24, { stream });
    copy.copyFrom(buffer, { stream });
    copies.push({ round, copy });
    buffer.close();
    await channel.send("closed"); // nothing here waits for the GPU: the next one comes while its owner still fills it
  }
  using sink = new HostMemoryResource().allocate(2 ** 24);
  const results = copies.map(({ round, copy }) => {
    copy.copyTo(sink, { stream });
    stream.synchronize();
    copy.close();
    return { round, wrong: sink.bytes().findIndex((byte) => byte !== round) };
  });
  await channel.send(results);
}

if (import.meta.main) {
  const [what = "", path = ""] = process.argv.slice(2);
  await (what === "probe" || what === "explicit" ? explicitly(path, what) : byChannel(path, what));
}
