/**
 * Unix domain sockets that preserve message boundaries and carry file descriptors, which neither runtime's own sockets
 * can.
 *
 * They are `SOCK_SEQPACKET` sockets: a message arrives whole, with its descriptors, or not at all.
 *
 * @module
 */
import { AF, errno, SO, SOCK, SOL, ucred } from "../../bindings/libc.ts";
import { checkMade, checkOptions, type OptionNames, showAs, showGiven } from "../layout/mod.ts";
import { attempt, layoutOf, libc, NativeArena, nodeBuiltin, SystemError } from "../ffi/mod.ts";
import { abortable } from "./abortable.ts";
import { FileDescriptor } from "./file_descriptor.ts";
import { untilReady } from "./poll.ts";
import { checkAddress, writeAddress } from "./address.ts";
import { descriptorLimit, maxBytes, receiveMessage, sendMessage } from "./message.ts";

// law unix/kind: unix/descriptors, unix/socket
const kind = SOCK.SEQPACKET | SOCK.NONBLOCK | SOCK.CLOEXEC;

/** Options of operations that wait. */
export interface WaitOptions {
  /** Ends the wait; nothing is lost. */
  readonly signal?: AbortSignal | undefined;
}

/** The names of {@linkcode WaitOptions}. */
export const waitOptionNames: OptionNames<WaitOptions> = { signal: true };

/** Options of {@linkcode UnixSocket.connect}. */
export interface UnixConnectOptions extends WaitOptions {
  /** Milliseconds to wait for a process to listen. Default 0: one must be listening already. */
  readonly timeout?: number;
  /**
   * Which processes may be listening. Default: those of this user. Any process may have taken a name that is not a file
   * first.
   */
  readonly allow?: (peer: UnixPeer) => boolean;
}

const unixConnectOptionNames: OptionNames<UnixConnectOptions> = { signal: true, timeout: true, allow: true };

/** Options of {@linkcode UnixSocket.receive}. */
export interface UnixReceiveOptions extends WaitOptions {
  /** The most descriptors to expect with a message. Default 253, which is Linux's limit. */
  readonly maxDescriptors?: number;
}

const unixReceiveOptionNames: OptionNames<UnixReceiveOptions> = { signal: true, maxDescriptors: true };

/** The process at the other end, as the kernel knows it. */
export interface UnixPeer {
  /** Its PID when it connected or began to listen. */
  readonly pid: number;
  /** Its user. */
  readonly uid: number;
  /** Its group. */
  readonly gid: number;
}

/** A message, with the descriptors that came with it. */
export interface UnixMessage {
  /** The bytes. */
  readonly data: Uint8Array<ArrayBuffer>;
  /** Our own descriptors for the files that were sent: close them. */
  readonly descriptors: readonly FileDescriptor[];
}

/**
 * A connection to another process on this machine that carries messages and open files.
 *
 * @example
 * ```ts
 * import { UnixSocket } from "@causeway/causeway/sharing";
 *
 * const [here, there] = UnixSocket.pair();
 * await here.send(new TextEncoder().encode("hello"));
 * const message = await there.receive();
 * console.log(message === null ? "" : new TextDecoder().decode(message.data)); // hello
 * here.close();
 * console.log(await there.receive()); // null
 * there.close();
 * ```
 */
export class UnixSocket {
  readonly #descriptor: FileDescriptor;
  readonly #closing = new AbortController();
  /** Messages are sent in order: a later one does not overtake one that waits. */
  #sent: Promise<unknown> = Promise.resolve();

  private constructor(descriptor: FileDescriptor) {
    checkMade(descriptor, "UnixSocket", "UnixSocket.connect(path)");
    this.#descriptor = descriptor;
  }

  /** A connection over a connected socket of the right kind, which it closes. */
  static over(descriptor: FileDescriptor): UnixSocket {
    return new UnixSocket(descriptor);
  }

  // law unix/UnixSocket.connect: unix/descriptors, unix/socket
  /**
   * Connects to a listening process.
   *
   * @param path of the socket's file, or `@` and a name that is not a file
   * @throws {SystemError} ECONNREFUSED or ENOENT if no process listens there, EACCES if this user may not connect, or
   *   `allow` rejects the listening process
   */
  static async connect(path: string, options: UnixConnectOptions = {}): Promise<UnixSocket> {
    checkOptions(options, unixConnectOptionNames);
    const { signal, timeout = 0, allow = isSameUser } = options;
    checkAddress(path);
    const deadline = performance.now() + timeout;
    for (;;) {
      signal?.throwIfAborted();
      const connected = connectOnce(path);
      if (typeof connected === "object") return new UnixSocket(connected).#allowed(path, allow);
      const code = -connected;
      // EAGAIN means that the listener's queue is full, which may pass; the other two pass once a process listens.
      const mayPass = ([errno.EAGAIN, errno.ECONNREFUSED, errno.ENOENT] as readonly number[]).includes(code);
      if (!mayPass || performance.now() >= deadline) {
        throw new SystemError(`connect to ${path}`, "connect", code, "Is the other process listening there yet?");
      }
      await nodeBuiltin("node:timers/promises").setTimeout(5);
    }
  }

  /** Two connected sockets, for one process or for a child that inherits one. */
  static pair(): [UnixSocket, UnixSocket] {
    using arena = new NativeArena();
    const { address, bytes } = arena.bytes(8);
    const code = attempt(() => libc().sockets.socketpair(AF.UNIX, kind, 0, address));
    if (code < 0) throw new SystemError("create two sockets", "socketpair", -code, "Are there too many open files?");
    const [one = -1, other = -1] = new Int32Array(bytes.buffer, bytes.byteOffset, 2);
    return [new UnixSocket(FileDescriptor.adopt(one)), new UnixSocket(FileDescriptor.adopt(other))];
  }

  /** Whether it was closed here. */
  get isClosed(): boolean {
    return this.#descriptor.isClosed;
  }

  /** The process at the other end. */
  get peer(): UnixPeer {
    using arena = new NativeArena();
    const who = arena.struct(ucred);
    const length = arena.out("u32");
    length.value = layoutOf(ucred).size;
    const { number } = this.#descriptor;
    const ask = () => libc().sockets.getsockopt(number, SOL.SOCKET, SO.PEERCRED, who.$address, length.$address);
    const code = attempt(ask);
    if (code < 0) throw new SystemError("identify the other end", "getsockopt", -code, "");
    return { pid: who.pid, uid: who.uid, gid: who.gid };
  }

  // law unix/UnixSocket.send: unix/descriptors, unix/socket
  /**
   * Sends a message once there is room for it. The descriptors remain the caller's, and may be closed afterwards: the
   * receiver gets its own.
   *
   * @param data 1 to 65536 bytes
   * @param descriptors at most 253
   * @throws {RangeError} for more or less than that
   * @throws {TypeError} for data that is no Uint8Array, and for a descriptor that is no FileDescriptor or is closed
   * @throws {SystemError} EPIPE or ECONNRESET if the other end is gone
   */
  async send(data: Uint8Array, descriptors: readonly FileDescriptor[] = [], options: WaitOptions = {}): Promise<void> {
    checkOptions(options, waitOptionNames);
    checkMessage(data, descriptors);
    // The caller may change both while this waits. The slice() of a Buffer is no copy.
    const [copy, files] = [new Uint8Array(data), [...descriptors]];
    const before = this.#sent;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#sent = promise;
    try {
      await abortable(before, options.signal);
      await this.#sendWhenReady(copy, files, options.signal);
    } finally {
      before.then(() => resolve()); // later messages wait for all earlier ones, whether this was sent or not
    }
  }

  /**
   * Waits for the next message.
   *
   * @returns null when the other end is closed
   * @throws {RangeError} if more descriptors arrived than expected, or a message larger than 65536 bytes: the
   *   descriptors are closed
   * @throws {SystemError} EMFILE if this process could not take all descriptors: those it could take are closed
   */
  async receive(options: UnixReceiveOptions = {}): Promise<UnixMessage | null> {
    checkOptions(options, unixReceiveOptionNames);
    const { maxDescriptors = descriptorLimit } = options;
    for (;;) {
      const { number } = this.#descriptor;
      const arrival = receiveMessage(number);
      switch (arrival.kind) {
        case "nothing yet":
          await untilReady(number, "readable", this.#stopSignal(options.signal));
          break;
        case "end":
          return null;
        case "failed":
          if (arrival.errno === errno.ECONNRESET) return null; // it closed with messages of ours unread
          throw new SystemError("receive a message", "recvmsg", arrival.errno, "");
        case "cut":
          if (arrival.what === "descriptors") {
            throw new SystemError("receive all descriptors of a message", "recvmsg", errno.EMFILE, "Raise `ulimit -n`");
          }
          throw new RangeError(`Cannot receive a message of more than ${maxBytes} bytes`);
        case "message":
          return expecting(maxDescriptors, arrival);
      }
    }
  }

  /** Closes this end, which ends the waits at both ends. Closing twice is harmless. */
  close(): void {
    if (this.#descriptor.isClosed) return;
    this.#closing.abort(new TypeError("Cannot use a closed UnixSocket"));
    this.#descriptor.close();
  }

  /** Closes this end. */
  [Symbol.dispose](): void {
    this.close();
  }

  // law unix/UnixSocket.allowed: unix/descriptors, unix/socket
  #allowed(path: string, allow: (peer: UnixPeer) => boolean): this {
    using refused = new DisposableStack(); // also where `allow` throws
    refused.use(this);
    const { peer } = this;
    if (allow(peer)) {
      refused.move();
      return this;
    }
    const hint = `User ${peer.uid} listens there, process ${peer.pid}: say in \`allow\` whom you trust`;
    throw new SystemError(`connect to ${path}`, "connect", errno.EACCES, hint);
  }

  async #sendWhenReady(
    data: Uint8Array,
    descriptors: readonly FileDescriptor[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    for (;;) {
      const { number } = this.#descriptor;
      const sent = sendMessage(number, data, descriptors.map((descriptor) => descriptor.number));
      if (sent >= 0) return;
      if (sent !== -errno.EAGAIN) {
        const gone = sent === -errno.EPIPE || sent === -errno.ECONNRESET;
        throw new SystemError("send a message", "sendmsg", -sent, gone ? "The other end is closed" : "");
      }
      await untilReady(number, "writable", this.#stopSignal(signal));
    }
  }

  #stopSignal(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
  }

  static {
    showAs(UnixSocket, (socket) => {
      if (socket.isClosed) return "(closed)";
      const { pid, uid } = socket.peer;
      return `to process ${pid} of user ${uid}`;
    });
  }
}

// law unix/checkMessage: unix/socket
/**
 * Rejects what cannot be a message.
 *
 * @throws {RangeError} for too many bytes or descriptors, and for no bytes
 * @throws {TypeError} for what is no Uint8Array, and no array of FileDescriptors
 */
export function checkMessage(data: Uint8Array, descriptors: readonly FileDescriptor[]): void {
  if (!(data instanceof Uint8Array)) {
    throw new TypeError(
      `Cannot send ${showGiven(data)}: expected a Uint8Array. new TextEncoder().encode(text) makes one of text`,
    );
  }
  if (!Array.isArray(descriptors)) {
    throw new TypeError(`Cannot send ${showGiven(descriptors)} as descriptors: expected an array of FileDescriptors`);
  }
  if (data.length < 1 || data.length > maxBytes) {
    throw new RangeError(`Cannot send a message of ${data.length} bytes: expected 1 to ${maxBytes}`);
  }
  if (descriptors.length > descriptorLimit) {
    throw new RangeError(`Cannot send ${descriptors.length} descriptors: expected at most ${descriptorLimit}`);
  }
  for (const descriptor of descriptors) {
    if (!(descriptor instanceof FileDescriptor)) {
      throw new TypeError(
        `Cannot send ${showGiven(descriptor)} as a descriptor: expected a FileDescriptor. ` +
          "FileDescriptor.adopt(number) owns the file of a number",
      );
    }
  }
}

/** Whether a process belongs to this process's user. */
export function isSameUser({ uid }: UnixPeer): boolean {
  return uid === libc().sockets.geteuid();
}

/** An unconnected socket of our kind. */
export function newSocket(doing: string): FileDescriptor {
  const code = attempt(() => libc().sockets.socket(AF.UNIX, kind, 0));
  if (code < 0) throw new SystemError(doing, "socket", -code, "");
  return FileDescriptor.adopt(code);
}

// law unix/connectOnce: unix/descriptors, unix/socket
/** A socket connected to a path, or `-errno`. */
function connectOnce(path: string): FileDescriptor | number {
  using failed = new DisposableStack();
  const descriptor = failed.use(newSocket(`connect to ${path}`));
  using arena = new NativeArena();
  const { address, length } = writeAddress(arena, path);
  const code = attempt(() => libc().sockets.connect(descriptor.number, address, length));
  if (code < 0) return code;
  failed.move();
  return descriptor;
}

function expecting(most: number, { data, descriptors }: UnixMessage): UnixMessage {
  if (descriptors.length <= most) return { data, descriptors };
  for (const descriptor of descriptors) descriptor.close();
  throw new RangeError(`Cannot take ${descriptors.length} descriptors with a message: expected at most ${most}`);
}
