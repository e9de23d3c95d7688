/**
 * Shares memory with another process: values that contain buffers, in causal order, over a Unix socket.
 *
 * @module
 */
import { checkStream, type CudaDevice, type CudaStream } from "../../device/mod.ts";
import {
  abortable,
  checkMessage,
  type FileDescriptor,
  type UnixConnectOptions,
  type UnixMessage,
  UnixSocket,
  type WaitOptions,
} from "../../unix/mod.ts";
import { FfiError, nodeBuiltin, SystemError } from "../../ffi/mod.ts";
import { checkOptions, type OptionNames, showAs } from "../../layout/mod.ts";
import { ChannelExports, Outgoing } from "./channel_exports.ts";
import { type Arrived, ChannelImports } from "./channel_imports.ts";
import type { Mark, Message, Shareable } from "./channel_message.ts";
import { waitForEnd } from "../../order/mod.ts";
import { StreamMarks } from "./interprocess_events.ts";

/** Options of {@linkcode MemoryChannel.receive}. */
export interface ReceiveValueOptions extends WaitOptions {
  /** The home stream of the received buffers. Default: the default stream of each buffer's device. */
  readonly stream?: CudaStream;
}

const receiveValueOptionNames: OptionNames<ReceiveValueOptions> = { signal: true, stream: true };

/**
 * A connection to another process that carries JSON containing buffers, pools, interprocess events and open files.
 *
 * A buffer that is sent is shared, not copied, and the channel keeps the order for both sides: everything enqueued on
 * its home stream before `send` comes before everything that the receiver enqueues on the buffer's home stream there;
 * and the memory is freed here, however early the buffer is closed, after everything that the receiver enqueued before
 * it closed its own buffer, or when the receiver is gone. No host waits for a GPU. Both sides see the same bytes: they
 * must agree on which side writes when.
 *
 * @example
 * ```ts
 * import { Cuda, DeviceMemoryResource, MemoryBuffer } from "@causeway/causeway";
 * import { MemoryChannel, UnixSocket } from "@causeway/causeway/sharing";
 *
 * // Two drivers stand for the two processes, and a pair of sockets for UnixListener.listen() and
 * // MemoryChannel.connect().
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
  readonly #devices: readonly CudaDevice[];
  readonly #marks: StreamMarks;
  readonly #exports: ChannelExports;
  readonly #imports: ChannelImports;
  readonly #arrived: Arrived[] = [];
  #news = Promise.withResolvers<void>();
  /** Settles once all messages so far have been sent, or cannot be. */
  #sent: Promise<void> = Promise.resolve();
  /** Messages that are not sent yet, and marks in replies whose events the other end has not opened yet. */
  #unsent = 0;
  #unlearned = 0;
  #closed = false;
  #closedThere = false;
  #ended = false;
  #failure: unknown;

  /** A channel over a connected socket, which it takes over. Everything received is for devices of this `Cuda`. */
  constructor(socket: UnixSocket, options: { readonly devices: readonly CudaDevice[] }) {
    if (!(socket instanceof UnixSocket) || !Array.isArray(options?.devices)) {
      throw new TypeError("Cannot make a MemoryChannel: expected a UnixSocket and { devices }, as cuda.devices");
    }
    const { devices } = options;
    this.#socket = socket;
    this.#devices = devices;
    this.#marks = new StreamMarks(devices);
    this.#exports = new ChannelExports(devices, this.#marks);
    this.#imports = new ChannelImports(devices, this.#marks, (shares, stream) => this.#returnShares(shares, stream));
    this.#listen();
  }

  /** Connects to a process that listens. See {@linkcode UnixSocket.connect}. */
  static async connect(
    path: string,
    cuda: { readonly devices: readonly CudaDevice[] },
    options: UnixConnectOptions = {},
  ): Promise<MemoryChannel> {
    return new MemoryChannel(await UnixSocket.connect(path, options), cuda);
  }

  /** Number of buffers sent that the other end has not returned. Their memory stays pinned, even if they are closed. */
  get shared(): number {
    return this.#exports.size;
  }

  // law memory/MemoryChannel.send: memory/sharing/memory_channel
  /**
   * Sends a value. Everything now enqueued on the home streams of its buffers comes before all use at the other end.
   * The other end knows a pool once the pool, or a buffer of it, was first sent.
   *
   * @throws {TypeError} for a value that is neither JSON nor shareable; nothing has been sent then
   * @throws {RangeError} for a value of more than 64 KiB as JSON, or with more than 253 new pools and files
   * @throws {SystemError} EPIPE if the other end is gone; otherwise what has ended the channel, as {@linkcode receive}
   */
  async send(value: Shareable): Promise<void> {
    this.#refuseClosed();
    if (this.#failure !== undefined) throw this.#failure;
    const outgoing = new Outgoing();
    try {
      // All of this runs during the call: so the message can only fail later if the whole connection does.
      const message = encode(this.#exports.describe(value, outgoing));
      checkMessage(message, outgoing.files);
      await this.#post(message, outgoing.files);
    } catch (error) {
      this.#exports.undo(outgoing);
      throw error;
    } finally {
      outgoing.own.dispose();
    }
  }

  // law memory/MemoryChannel.receive: memory/sharing/memory_channel
  /**
   * Waits for the next value. Its buffers are usable on their home streams at once, and must be closed; its pools
   * belong to the channel; its events must be closed before their owner closes them; its files must be closed, too.
   *
   * @returns undefined when the other end has closed the channel or is gone
   * @throws {RangeError} if the value names a device that this process does not see; it counts as returned then
   * @throws {CudaError} if the memory cannot be opened, for example because it comes from this very process
   */
  async receive(options: ReceiveValueOptions = {}): Promise<unknown> {
    checkOptions(options, receiveValueOptionNames);
    const { stream } = options;
    const [device] = this.#devices;
    // Before a value is taken, which would be lost.
    if (stream !== undefined && device !== undefined) checkStream(stream, device, "Cannot receive with a stream");
    for (;;) {
      this.#refuseClosed();
      const next = this.#arrived.shift();
      if (next !== undefined) return this.#imports.open(next, stream);
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#ended || this.#closedThere) return undefined;
      await abortable(this.#news.promise, options.signal);
    }
  }

  /** Whether it was closed here; the connection may last until all that was sent has been returned. */
  get isClosed(): boolean {
    return this.#closed;
  }

  // law memory/MemoryChannel.close: memory/sharing/memory_channel, checker/lifetime
  /**
   * Closes the channel: at once for its user and for the other end, which receives the values sent and then undefined.
   * The connection closes when everything that was passed to `send` at either end has been sent and returned, and keeps
   * the process alive until then. Closing twice is harmless.
   */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const one of this.#arrived.splice(0)) this.#imports.refuse(one);
    // The other end may hold our memory while it waits for the end of our values: it would never return it.
    if (this.#isUsed && !this.#ended) this.#answer({ kind: "closed" });
    this.#imports.close(); // nothing more is received
    this.#tellNews();
    this.#endIfUnused();
  }

  /** Closes the channel. */
  [Symbol.dispose](): void {
    this.close();
  }

  #returnShares(shares: readonly number[], stream: CudaStream | null): void {
    try {
      if (shares.length === 0 || this.#ended) return; // no need if the other end is gone
      const marks: Mark[] = [];
      const mark = stream === null ? null : this.#markEnd(stream, marks);
      this.#unlearned += marks.length;
      this.#answer({ kind: "released", shares, mark, marks });
    } finally {
      this.#endIfUnused();
    }
  }

  // law memory/MemoryChannel.markEnd: memory/sharing/memory_channel
  /** Marks the current end of a stream for the other side, or waits for it here if the driver cannot provide a mark. */
  #markEnd(stream: CudaStream, marks: Mark[]): number | null {
    try {
      return this.#marks.mark(stream, marks);
    } catch {
      waitForEnd(stream);
      return null;
    }
  }

  // law memory/MemoryChannel.post: memory/sharing/memory_channel
  /** Sends a message after all earlier ones, of which one may describe a mark or a pool that this one only names. */
  #post(message: Uint8Array<ArrayBuffer>, files: readonly FileDescriptor[] = []): Promise<void> {
    this.#unsent++;
    const sent = this.#sent.then(() => untilThereIsMemory(() => this.#socket.send(message, files)));
    this.#sent = sent.catch(() => {}).finally(() => {
      this.#unsent--;
      this.#endIfUnused();
    });
    return sent;
  }

  #answer(message: Message): void {
    this.#post(encode(message)).catch(() => {}); // a failure means that the other end is gone
  }

  // law memory/MemoryChannel.listen: memory/sharing/memory_channel
  async #listen(): Promise<void> {
    try {
      const receive = () => untilThereIsMemory(() => this.#socket.receive());
      for (let next = await receive(); next !== null; next = await receive()) this.#take(next);
      this.#exports.takeAllBack();
    } catch (error) {
      this.#failure = error;
      // An invalid message ends the connection, for the other end too. That end may still use our memory, which is kept
      // for the lifetime of the process: nothing will ever report it unused.
      this.#socket.close();
    }
    this.#ended = true;
    this.#tellNews();
    this.#endIfUnused();
  }

  #take({ data, descriptors }: UnixMessage): void {
    const message = decode(data, descriptors);
    switch (message.kind) {
      case "released":
        this.#exports.takeBack(message);
        if (message.marks.length > 0) this.#answer({ kind: "learned", count: message.marks.length });
        break;
      case "learned":
        this.#unlearned -= message.count;
        break;
      case "closed":
        this.#closedThere = true;
        this.#tellNews();
        break;
      case "value":
        this.#marks.learn(message.marks); // now: a return that comes before the program takes the value may name them
        if (this.#closed) this.#imports.refuse({ message, files: descriptors });
        else this.#arrived.push({ message, files: descriptors });
        this.#tellNews();
    }
    this.#endIfUnused();
  }

  #tellNews(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  #refuseClosed(): void {
    if (this.#closed) throw new TypeError("Cannot use a closed MemoryChannel");
  }

  /** Whether anything remains to be returned or sent. */
  get #isUsed(): boolean {
    return this.#exports.size + this.#imports.size + this.#unsent + this.#unlearned > 0;
  }

  #endIfUnused(): void {
    if (!this.#closed || (this.#isUsed && !this.#ended)) return;
    this.#socket.close();
    this.#marks.close();
    this.#imports.close();
  }

  static {
    showAs(MemoryChannel, (channel) => {
      const { shared } = channel;
      const state = channel.#closed
        ? ", closed"
        : channel.#closedThere || channel.#ended
        ? ", closed at the other end"
        : "";
      return `(${shared} buffer${shared === 1 ? "" : "s"} shared)${state}`;
    });
  }
}

/** How long to pause where the system has no memory for a message, in milliseconds. */
const memoryPause = 5;

// law memory/untilThereIsMemory: memory/sharing/memory_channel
/**
 * Repeats a call that fails for want of memory, which passes. A channel cannot do without its messages: the other end
 * would free memory that is in use here, or never free what was returned.
 */
async function untilThereIsMemory<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isShort = error instanceof SystemError ? shortages.has(error.code) : error instanceof FfiError;
      if (!isShort) throw error;
      await nodeBuiltin("node:timers/promises").setTimeout(memoryPause);
    }
  }
}

/** What the system says where it has no memory for a message. */
const shortages: ReadonlySet<string> = new Set(["ENOBUFS", "ENOMEM"]);

function encode(message: Message): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(message));
}

/** @throws {SyntaxError} for data that is not JSON: descriptors that came with it are closed */
function decode(data: Uint8Array, descriptors: readonly FileDescriptor[]): Message {
  try {
    return JSON.parse(new TextDecoder().decode(data)) as Message; // made by `encode` of a channel of the same user
  } catch (error) {
    for (const descriptor of descriptors) descriptor.close();
    throw error;
  }
}
