/**
 * Sharing memory with another process: values with buffers in them, in causal order, over a Unix socket.
 *
 * @module
 */
import type { Cuda } from "../cuda/cuda.ts";
import { CudaEvent } from "../cuda/event.ts";
import type { CudaStream } from "../cuda/stream.ts";
import { FileDescriptor } from "../ffi/file_descriptor.ts";
import {
  checkMessage,
  type UnixConnectOptions,
  type UnixMessage,
  UnixSocket,
  type WaitOptions,
} from "../ffi/unix_socket.ts";
import {
  extract,
  type Mark,
  type Message,
  type Part,
  restore,
  type Shareable,
  type SharedResource,
  type ValueMessage,
} from "./channel_message.ts";
import { DeviceMemoryResource } from "./device_memory_resource.ts";
import type { MemoryBuffer } from "./memory_buffer.ts";
import type { MemoryPool } from "./memory_pool.ts";
import { type ImportBufferOptions, importMemory } from "./shared_buffer.ts";
import { findDevice, StreamMarks } from "./stream_marks.ts";

/** Options of {@linkcode MemoryChannel.receive}. */
export interface ReceiveValueOptions extends WaitOptions {
  /** The home stream of the buffers that arrive. Default: the default stream of each buffer's device. */
  readonly stream?: CudaStream;
}

interface Arrived {
  readonly message: ValueMessage;
  readonly files: readonly FileDescriptor[];
}

/**
 * A connection to another process that carries JSON with buffers, pools, interprocess events and open files in it.
 *
 * A buffer that is sent is shared, not copied, and the order is kept for both sides: what was enqueued on its home stream
 * before `send` comes before everything that the receiver enqueues on the buffer's home stream there; and the memory is
 * freed here, however early the buffer is closed, after everything that the receiver enqueued before it closed its own, or
 * when the receiver is gone. No host waits for a GPU. Both sides see the same bytes: who writes when is theirs to agree
 * on.
 *
 * @example
 * ```ts
 * import { Cuda, DeviceMemoryResource, MemoryBuffer, MemoryChannel, UnixSocket } from "@causeway/causeway";
 *
 * // Two drivers stand for the two processes, and a pair of sockets for UnixListener.listen() and MemoryChannel.connect().
 * const [here, there] = [Cuda.simulate(), Cuda.simulate()];
 * const [one, other] = UnixSocket.pair();
 * {
 *   using owner = new MemoryChannel(one, here);
 *   using user = new MemoryChannel(other, there);
 *   using stream = here.device(0).createStream();
 *   using pool = new DeviceMemoryResource(here.device(0), { shareable: true });
 *   using weights = pool.allocate(1024, { stream });
 *   weights.fill(7, { stream });
 *   await owner.send({ weights, shape: [32, 32] });
 *
 *   const { weights: shared, shape } = await user.receive() as { weights: MemoryBuffer; shape: number[] };
 *   console.log(shared.size, shape); // 1024 [ 32, 32 ]
 *   shared.close();
 * }
 * ```
 */
export class MemoryChannel {
  readonly #socket: UnixSocket;
  readonly #cuda: Cuda;
  readonly #marks: StreamMarks;
  /** What the other side has not given back: ends the pin of a buffer, ordered after what it did. */
  readonly #shares = new Map<number, (mark: number | null) => void>();
  /** Pools of ours that the other side knows, and pools of its that we know, by number. */
  readonly #told = new Map<MemoryPool, number>();
  readonly #pools = new Map<number, DeviceMemoryResource>();
  readonly #arrived: Arrived[] = [];
  #news = Promise.withResolvers<void>();
  /** Buffers of the other side that are not closed here. */
  #imported = 0;
  #nextShare = 0;
  #nextPool = 0;
  /** Messages about releases that are not sent yet, and marks in them that the other side has not opened yet. */
  #unsent = 0;
  #unlearned = 0;
  #closed = false;
  #ended = false;
  #failure: unknown;

  /** A channel over a connected socket, which it takes over. Whatever arrives is for devices of this `Cuda`. */
  constructor(socket: UnixSocket, cuda: Cuda) {
    this.#socket = socket;
    this.#cuda = cuda;
    this.#marks = new StreamMarks(cuda.devices);
    this.#listen();
  }

  /** Connects to a process that listens. See {@linkcode UnixSocket.connect}. */
  static async connect(path: string, cuda: Cuda, options: UnixConnectOptions = {}): Promise<MemoryChannel> {
    return new MemoryChannel(await UnixSocket.connect(path, options), cuda);
  }

  /** Buffers that were sent and that the other side has not given back. Their memory is kept, even if they are closed. */
  get shared(): number {
    return this.#shares.size;
  }

  /**
   * Sends a value. What is enqueued on the home streams of its buffers at this moment comes before all use on the other
   * side. A pool is known to the other side from the first time that it, or a buffer of it, was sent.
   *
   * @throws {TypeError} for what is neither JSON nor can be shared; nothing has been sent then
   * @throws {RangeError} for a value of more than 64 KiB as JSON, or with more than 253 pools and files that are new
   * @throws {SystemError} EPIPE if the other side is gone
   */
  async send(value: Shareable): Promise<void> {
    this.#refuseClosed();
    const sending = new Sending();
    try {
      // All of this happens at the call: so the message cannot fail later but with the connection as a whole.
      const message = encode(this.#describeAll(value, sending));
      checkMessage(message, sending.files);
      await this.#socket.send(message, sending.files);
    } catch (error) {
      for (const undo of sending.undo) undo();
      this.#marks.unmark(sending.marks);
      throw error;
    } finally {
      for (const file of sending.own) file.close();
    }
  }

  /**
   * Waits for the next value. Its buffers are usable on their home streams at once, and have to be closed; its pools
   * belong to the channel; its events have to be closed, before their owner closes them; so have its files.
   *
   * @returns undefined when the other side has closed the channel or is gone
   * @throws {RangeError} if it speaks of a device that this process does not see; it counts as given back then
   * @throws {CudaError} if the memory cannot be opened, such as when it comes from this very process
   */
  async receive(options: ReceiveValueOptions = {}): Promise<unknown> {
    for (;;) {
      this.#refuseClosed();
      const next = this.#arrived.shift();
      if (next !== undefined) return this.#open(next, options.stream);
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended) return undefined;
      await untilNews(this.#news.promise, options.signal);
    }
  }

  /**
   * Closes the channel: at once for its user; the connection itself, when everything that went over it in either direction
   * has been given back. Closing twice is harmless.
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const one of this.#arrived.splice(0)) this.#giveBack(one);
    this.#tellNews();
    this.#endIfUnused();
  }

  /** Closes the channel. */
  [Symbol.dispose](): void {
    this.close();
  }

  #describeAll(value: Shareable, sending: Sending): ValueMessage {
    const { value: plain, found } = extract(value);
    for (const { path, resource } of found) sending.parts.push({ path, ...this.#describe(resource, sending) });
    const { parts, pools, marks } = sending;
    return { kind: "value", value: plain, parts, pools, marks };
  }

  #describe(resource: SharedResource, sending: Sending): DistributiveOmit<Part, "path"> {
    if (resource instanceof FileDescriptor) return { kind: "file", file: sending.files.push(resource) - 1 };
    if (resource instanceof CudaEvent) return { kind: "event", event: resource.exportHandle() };
    if (resource instanceof DeviceMemoryResource) return { kind: "pool", pool: this.#tell(resource.pool, sending) };
    const descriptor = resource.exportDescriptor();
    const pool = resource.pool === null ? null : this.#tell(resource.pool, sending);
    const share = this.#share(resource, sending);
    const mark = resource.stream === null ? null : this.#marks.mark(resource.stream, sending.marks);
    return { kind: "buffer", share, descriptor, pool, mark };
  }

  /** The number of a pool, which is sent along if the other side does not know it. */
  #tell(pool: MemoryPool, sending: Sending): number {
    const known = this.#told.get(pool);
    if (known !== undefined) return known;
    const file = pool.export();
    sending.own.push(file);
    const id = this.#nextPool++;
    sending.pools.push({ id, device: pool.device.uuid, file: sending.files.push(file) - 1 });
    this.#told.set(pool, id);
    sending.undo.push(() => this.#told.delete(pool));
    return id;
  }

  /** Keeps a buffer's memory until the other side gives it back. */
  #share(buffer: MemoryBuffer, sending: Sending): number {
    const share = this.#nextShare++;
    const unpin = buffer.pin();
    this.#shares.set(share, (mark) => {
      this.#shares.delete(share);
      try {
        if (mark !== null && buffer.stream !== null) this.#marks.wait(buffer.stream, mark);
      } finally {
        unpin();
      }
    });
    sending.undo.push(() => this.#shares.get(share)?.(null));
    return share;
  }

  #open({ message, files }: Arrived, stream: CudaStream | undefined): unknown {
    const opened: SharedResource[] = [];
    const taken = new Set<number>();
    try {
      this.#marks.learn(message.marks);
      for (const { id, device, file } of message.pools) {
        const pool = files[file];
        if (pool === undefined) throw new TypeError(`Cannot read a message: pool ${id} came without its file`);
        this.#pools.set(id, DeviceMemoryResource.importPool(findDevice(this.#cuda.devices, device), pool));
        pool.close();
      }
      let { value } = message;
      for (const part of message.parts) {
        const resource = this.#import(part, files, stream);
        if (part.kind === "buffer") taken.add(part.share);
        opened.push(resource);
        value = restore(value, part.path, resource);
      }
      return value;
    } catch (error) {
      // A pool stays the channel's; everything else goes back as if it had never come.
      for (const one of opened) if (!(one instanceof DeviceMemoryResource)) one.close();
      this.#giveBack({ message, files }, taken);
      throw error;
    }
  }

  #import(part: Part, files: readonly FileDescriptor[], stream: CudaStream | undefined): SharedResource {
    switch (part.kind) {
      case "event":
        return findDevice(this.#cuda.devices, part.event.device).importEvent(part.event);
      case "pool":
        return this.#pool(part.pool);
      case "file": {
        const file = files[part.file];
        if (file === undefined) throw new TypeError("Cannot read a message: a file did not come with it");
        return file;
      }
      case "buffer":
        return this.#importBuffer(part, stream);
    }
  }

  #importBuffer(part: Extract<Part, { readonly kind: "buffer" }>, stream: CudaStream | undefined): MemoryBuffer {
    const device = findDevice(this.#cuda.devices, part.descriptor.device);
    const home = stream ?? device.defaultStream;
    const onRelease = (at: CudaStream) => {
      this.#imported--;
      this.#release([part.share], at);
      this.#endIfUnused();
    };
    const options: ImportBufferOptions = { stream: home, onRelease };
    const buffer = part.pool === null
      ? importMemory(device, part.descriptor, options)
      : this.#pool(part.pool).importBuffer(part.descriptor, options);
    this.#imported++;
    if (part.mark !== null) this.#marks.wait(home, part.mark);
    return buffer;
  }

  #pool(id: number): DeviceMemoryResource {
    const pool = this.#pools.get(id);
    if (pool === undefined) throw new TypeError(`Cannot read a message: it speaks of pool ${id}, which never came`);
    return pool;
  }

  /** Says that memory has been given back, after what is enqueued on a stream. */
  #release(shares: readonly number[], stream: CudaStream | null): void {
    if (shares.length === 0 || this.#ended) return; // if the other side is gone, so is the need
    const marks: Mark[] = [];
    const mark = stream === null ? null : this.#marks.mark(stream, marks);
    this.#unlearned += marks.length;
    this.#answer({ kind: "released", shares, mark, marks });
  }

  #answer(message: Message): void {
    this.#unsent++;
    this.#socket.send(encode(message)).catch(() => {}).finally(() => { // if it fails the other side is gone
      this.#unsent--;
      this.#endIfUnused();
    });
  }

  /** Gives back what has arrived and was not taken. */
  #giveBack({ message, files }: Arrived, taken: ReadonlySet<number> = new Set()): void {
    for (const file of files) file.close();
    const shares = message.parts.flatMap((part) => part.kind === "buffer" ? [part.share] : []);
    this.#release(shares.filter((share) => !taken.has(share)), null);
  }

  async #listen(): Promise<void> {
    try {
      for (let next = await this.#socket.receive(); next !== null; next = await this.#socket.receive()) {
        this.#take(next);
      }
    } catch (error) {
      if (!this.#closed) this.#failure = error;
      this.#socket.close(); // what cannot be understood is the end of it, for the other side too
    }
    this.#ended = true;
    for (const end of [...this.#shares.values()]) end(null); // who is gone uses nothing any more
    this.#tellNews();
    this.#endIfUnused();
  }

  #take({ data, descriptors }: UnixMessage): void {
    const message = decode(data, descriptors);
    if (message.kind === "learned") {
      this.#unlearned -= message.count;
      this.#endIfUnused();
    } else if (message.kind === "released") {
      this.#marks.learn(message.marks);
      for (const share of message.shares) this.#shares.get(share)?.(message.mark);
      if (message.marks.length > 0) this.#answer({ kind: "learned", count: message.marks.length });
      this.#endIfUnused();
    } else if (this.#closed) this.#giveBack({ message, files: descriptors });
    else {
      this.#arrived.push({ message, files: descriptors });
      this.#tellNews();
    }
  }

  #tellNews(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  #refuseClosed(): void {
    if (this.#closed) throw new TypeError("Cannot use a closed MemoryChannel");
  }

  #endIfUnused(): void {
    const used = this.#shares.size + this.#imported + this.#unsent + this.#unlearned > 0;
    if (!this.#closed || (used && !this.#ended)) return;
    this.#socket.close();
    this.#marks.close();
    for (const pool of this.#pools.values()) pool.close();
  }
}

/** A message that is being put together. */
class Sending {
  readonly parts: Part[] = [];
  readonly pools: ValueMessage["pools"][number][] = [];
  readonly marks: Mark[] = [];
  /** Files that go along, in the order of their numbers. */
  readonly files: FileDescriptor[] = [];
  /** Those of them that were made for this message. */
  readonly own: FileDescriptor[] = [];
  /** What is undone if it is not sent. */
  readonly undo: (() => void)[] = [];
}

type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

function encode(message: Message): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(message));
}

/** @throws {SyntaxError} for what is no JSON: what came with it is closed */
function decode(data: Uint8Array, descriptors: readonly FileDescriptor[]): Message {
  try {
    return JSON.parse(new TextDecoder().decode(data)) as Message; // made by `encode` of a channel of the same user
  } catch (error) {
    for (const descriptor of descriptors) descriptor.close();
    throw error;
  }
}

/** Waits for news, or for the signal. */
async function untilNews(news: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  if (signal === undefined) return news;
  const { promise, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await Promise.race([news, promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
