/**
 * TCP connections that are not UCX's: system sockets, so that a listener has its port when the call returns, and no
 * runtime permission is needed for what UCX does without one.
 *
 * @module
 */
import { errno, MSG, SHUT, SO, SOCK, SOL } from "../../../bindings/libc.ts";
import { attempt, libc, NativeArena, nodeBuiltin, SystemError } from "../../ffi/mod.ts";
import { watchReadable } from "../../native/mod.ts";
import { FileDescriptor, untilReady } from "../../unix/mod.ts";
import type { Acceptor } from "./acceptor.ts";
import {
  formatHostAndPort,
  type HostAndPort,
  readSocketAddress,
  type SocketAddress,
  storageBytes,
  writeSocketAddress,
} from "./socket_address.ts";
import { cannotListen } from "./no_listener.ts";

const kind = SOCK.STREAM | SOCK.NONBLOCK | SOCK.CLOEXEC;
/** How many connections the system keeps until they are accepted. */
const systemBacklog = 4096;
/** How many connections are accepted before the event loop turns. */
const acceptedPerTurn = 64;
/** How long to wait for a descriptor when there are none left, in milliseconds. */
const descriptorPause = 50;

/** A TCP connection. */
export class TcpConnection {
  readonly #descriptor: FileDescriptor;
  readonly #closing = new AbortController();

  constructor(descriptor: FileDescriptor) {
    this.#descriptor = descriptor;
  }

  // law ucx/TcpConnection.connect: ucx/tcp_connection
  /**
   * Connects to an address.
   *
   * @throws {SystemError} ECONNREFUSED if nobody listens there
   * @throws the signal's reason
   */
  static async connect(to: HostAndPort, signal: AbortSignal): Promise<TcpConnection> {
    const doing = `connect to ${formatHostAndPort(to)}`;
    using arena = new NativeArena();
    const address = writeSocketAddress(arena, to);
    const descriptor = newSocket(address, doing);
    try {
      const { number } = descriptor;
      const code = attempt(() => libc().sockets.connect(number, address.addr, address.addrlen));
      if (code < 0 && code !== -errno.EINPROGRESS) throw new SystemError(doing, "connect", -code, "");
      await untilReady(number, "writable", signal);
      const failure = arena.out("i32");
      const length = arena.out("u32");
      length.value = 4;
      libc().sockets.getsockopt(number, SOL.SOCKET, SO.ERROR, failure.$address, length.$address);
      if (failure.value !== 0) throw new SystemError(doing, "connect", failure.value, "");
      return new TcpConnection(descriptor);
    } catch (error) {
      descriptor.close();
      throw error;
    }
  }

  // law ucx/TcpConnection.receive: ucx/tcp_connection, ucx/secret
  /** Receives exactly `count` bytes, at least one; null if the connection ends first. */
  async receive(count: number): Promise<Uint8Array<ArrayBuffer> | null> {
    using arena = new NativeArena();
    const into = arena.bytes(count);
    for (let at = 0; at < count;) {
      if (this.#descriptor.isClosed) return null;
      const { number } = this.#descriptor;
      const received = attempt(() => libc().sockets.recv(number, into.address + BigInt(at), BigInt(count - at), 0));
      if (received > 0) at += received;
      else if (received !== -errno.EAGAIN) return null; // its end, or a failure, which counts as one
      else await untilReady(number, "readable", this.#closing.signal).catch(() => {});
    }
    return into.bytes.slice();
  }

  /** Sends bytes. @returns whether all were sent */
  async send(bytes: Uint8Array): Promise<boolean> {
    using arena = new NativeArena();
    const from = arena.bytes(bytes.length);
    from.bytes.set(bytes);
    for (let at = 0; at < bytes.length;) {
      if (this.#descriptor.isClosed) return false;
      const { number } = this.#descriptor;
      const left = BigInt(bytes.length - at);
      const sent = attempt(() => libc().sockets.send(number, from.address + BigInt(at), left, MSG.NOSIGNAL));
      if (sent >= 0) at += sent;
      else if (sent !== -errno.EAGAIN) return false;
      else await untilReady(number, "writable", this.#closing.signal).catch(() => {});
    }
    return true;
  }

  // law ucx/TcpConnection.finish: ucx/tcp_connection
  /** Shuts down sending, and settles when the other side has read everything and closed, too. */
  async finish(): Promise<void> {
    if (this.#descriptor.isClosed) return;
    libc().sockets.shutdown(this.#descriptor.number, SHUT.WR);
    while (await this.receive(4096) !== null); // a close would drop bytes in flight if anything is unread
    this.close();
  }

  /** Closes the connection at once, and ends all waits for it. Closing twice is harmless. */
  close(): void {
    this.#closing.abort(new TypeError("The connection was closed")); // first: a closed descriptor must not be polled
    this.#descriptor.close();
  }
}

// law ucx/listenTcp: ucx/tcp_connection
/**
 * Listens, and keeps the process alive.
 *
 * @param onConnection is called with each connection
 * @param onShortage is called when no descriptor is left for a waiting connection: to close another
 * @throws {SystemError} EADDRINUSE if the port is taken, EADDRNOTAVAIL if the address is not this machine's
 */
export function listenTcp(
  at: HostAndPort,
  onConnection: (connection: TcpConnection) => void,
  onShortage: () => void,
): Acceptor {
  const { sockets } = libc();
  using arena = new NativeArena();
  const address = writeSocketAddress(arena, at);
  const descriptor = newSocket(address, `listen at ${formatHostAndPort(at)}`);
  try {
    const { number } = descriptor;
    const check = (call: string, code: number) => {
      if (code < 0) throw cannotListen(at, call, -code);
    };
    // Lingering connections of an earlier process do not keep its port busy.
    const yes = arena.out("i32");
    yes.value = 1;
    check("setsockopt", attempt(() => sockets.setsockopt(number, SOL.SOCKET, SO.REUSEADDR, yes.$address, 4)));
    check("bind", attempt(() => sockets.bind(number, address.addr, address.addrlen)));
    check("listen", attempt(() => sockets.listen(number, systemBacklog)));
    const bound = arena.bytes(storageBytes);
    const length = arena.out("u32");
    length.value = storageBytes;
    check("getsockname", attempt(() => sockets.getsockname(number, bound.address, length.$address)));
    const { setTimeout, clearTimeout } = nodeBuiltin("node:timers");
    let timer: ReturnType<typeof setTimeout> | undefined;
    const watch = watchReadable([number], () => {
      for (let n = 0; n < acceptedPerTurn && !descriptor.isClosed; n++) {
        const code = attempt(() => sockets.accept4(number, 0n, 0n, SOCK.NONBLOCK | SOCK.CLOEXEC));
        if (code >= 0) onConnection(new TcpConnection(FileDescriptor.adopt(code)));
        else if (code === -errno.EAGAIN) break;
        else if (code !== -errno.ECONNABORTED) {
          onShortage();
          timer = setTimeout(() => watch.start(), descriptorPause); // restarting at once would loop
          return;
        }
      }
      watch.start();
    });
    watch.start();
    return {
      ...readSocketAddress(bound.bytes),
      close: () => {
        clearTimeout(timer);
        watch.close();
        descriptor.close();
      },
    };
  } catch (error) {
    descriptor.close();
    throw error;
  }
}

function newSocket({ family }: SocketAddress, doing: string): FileDescriptor {
  const code = attempt(() => libc().sockets.socket(family, kind, 0));
  if (code < 0) throw new SystemError(doing, "socket", -code, "Are there too many open files?");
  return FileDescriptor.adopt(code);
}
