/**
 * Listening for connections from other processes on this machine.
 *
 * @module
 */
import { errno, SOCK } from "../../bindings/libc.ts";
import { checkMade, checkOptions, type OptionNames, showAs } from "../layout/mod.ts";
import { attempt, cString, libc, NativeArena, SystemError } from "../ffi/mod.ts";
import { FileDescriptor } from "./file_descriptor.ts";
import { untilReady } from "./poll.ts";
import { checkAddress, isAbstract, writeAddress } from "./address.ts";
import { isSameUser, newSocket, type UnixPeer, UnixSocket, waitOptionNames, type WaitOptions } from "./socket.ts";

/** Options of {@linkcode UnixListener.listen}. */
export interface UnixListenOptions {
  /**
   * Which processes may connect; others are disconnected at once. Default: processes of the listening user. A socket
   * that is not a file can be found by every process on the machine.
   */
  readonly allow?: (peer: UnixPeer) => boolean;
}

const unixListenOptionNames: OptionNames<UnixListenOptions> = { allow: true };

/** Waits for processes on this machine to connect. */
export class UnixListener {
  /** The path that it listens on. */
  readonly path: string;
  readonly #descriptor: FileDescriptor;
  readonly #allow: (peer: UnixPeer) => boolean;
  readonly #closing = new AbortController();

  private constructor(path: string, descriptor: FileDescriptor, allow: (peer: UnixPeer) => boolean) {
    checkMade(allow, "UnixListener", "UnixListener.listen(path)");
    this.path = path;
    this.#descriptor = descriptor;
    this.#allow = allow;
  }

  // law unix/UnixListener.listen: unix/descriptors, unix/socket
  /**
   * Starts listening.
   *
   * @param path of a file to create, or `@` and a name that is not a file and ends with the process
   * @throws {SystemError} EADDRINUSE if the path is taken, be it by the file of a process that died
   */
  static listen(path: string, options: UnixListenOptions = {}): UnixListener {
    checkOptions(options, unixListenOptionNames);
    checkAddress(path);
    const descriptor = newSocket(`listen on ${path}`);
    try {
      using arena = new NativeArena();
      const { address, length } = writeAddress(arena, path);
      const { number } = descriptor;
      const bound = attempt(() => libc().sockets.bind(number, address, length));
      // A name that is not a file ends with the process that has it.
      const hint = isAbstract(path)
        ? "A process listens there"
        : "If no process listens there any more, remove the file";
      if (bound < 0) {
        throw new SystemError(`listen on ${path}`, "bind", -bound, bound === -errno.EADDRINUSE ? hint : "");
      }
      const listening = attempt(() => libc().sockets.listen(number, 64));
      if (listening < 0) throw new SystemError(`listen on ${path}`, "listen", -listening, "");
      return new UnixListener(path, descriptor, options.allow ?? isSameUser);
    } catch (error) {
      descriptor.close();
      throw error;
    }
  }

  // law unix/UnixListener.accept: unix/descriptors, unix/socket
  /** Waits for the next process that may connect. */
  async accept(options: WaitOptions = {}): Promise<UnixSocket> {
    checkOptions(options, waitOptionNames);
    const signals = [this.#closing.signal, ...(options.signal === undefined ? [] : [options.signal])];
    const stop = AbortSignal.any(signals);
    for (;;) {
      const { number } = this.#descriptor;
      const code = attempt(() => libc().sockets.accept4(number, 0n, 0n, SOCK.NONBLOCK | SOCK.CLOEXEC));
      if (code >= 0) {
        using refused = new DisposableStack(); // also where `allow` throws
        const socket = refused.use(UnixSocket.over(FileDescriptor.adopt(code)));
        if (!this.#allow(socket.peer)) continue;
        refused.move();
        return socket;
      } else if (code === -errno.EAGAIN) await untilReady(number, "readable", stop);
      else if (code !== -errno.ECONNABORTED) throw new SystemError(`accept on ${this.path}`, "accept4", -code, "");
    }
  }

  /** Whether `close` has been called. */
  get isClosed(): boolean {
    return this.#descriptor.isClosed;
  }

  /** Stops listening and removes the file. Accepted connections stay open. Closing twice is harmless. */
  close(): void {
    if (this.#descriptor.isClosed) return;
    this.#closing.abort(new TypeError("Cannot use a closed UnixListener"));
    this.#descriptor.close();
    if (!isAbstract(this.path)) libc().sockets.unlink(cString(this.path));
  }

  /** Stops listening. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(UnixListener, (listener) => `at ${listener.path}${listener.#descriptor.isClosed ? ", closed" : ""}`);
  }
}
