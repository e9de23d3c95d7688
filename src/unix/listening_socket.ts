/**
 * The listening socket of another library, which accepts its connections and goes on using its number.
 *
 * @module
 */
import { EPOLL, EPOLL_CTL, SHUT, SO, SOL } from "../../bindings/libc.ts";
import { libc, NativeArena } from "../ffi/mod.ts";
import { membersOf, setsWith } from "./set_members.ts";

/** How many numbers are looked at. */
const maxLookedAt = 4096;

/** The size of a `struct sockaddr_storage`. */
const storageBytes = 128;

/** Address families of the internet: AF_INET and AF_INET6, in the first byte of an address. */
const internet: ReadonlySet<number> = new Set([2, 10]);

/** Where the host begins in an address, after the family and the port; all zeros are every host. */
const hostAt = 4;

/** The lowest number that is free: the system gives it to the next descriptor, whoever creates it. */
export function nextDescriptor(): number {
  const fd = libc().files.eventfd(0, 0);
  libc().files.close(fd);
  return fd;
}

/** A listening socket. */
export class ListeningSocket {
  readonly #fd: number;
  /** The sets by which its owner learns of its connections, and of what they send. */
  readonly #sets: readonly number[];
  /** The part of its address that its connections have in common. */
  readonly #common: Uint8Array;
  /** When it was stopped, its connections and their other sides: later ones on the port are another socket's. */
  #last: ReadonlyMap<number, string> | null = null;

  // law unix/ListeningSocket.constructor: unix/listening_socket
  private constructor(fd: number, address: Uint8Array) {
    this.#fd = fd;
    const isEveryHosts = address.subarray(hostAt).every((byte) => byte === 0);
    this.#common = isEveryHosts ? address.subarray(0, hostAt) : address;
    this.#sets = setsWith(fd);
  }

  // law unix/ListeningSocket.find: unix/listening_socket
  /**
   * Finds a socket.
   *
   * @param from the lowest number that it can have
   * @param isIt whether an address, a `sockaddr`, is the socket's
   */
  static find(from: number, isIt: (address: Uint8Array) => boolean): ListeningSocket | null {
    for (let fd = from; fd < from + maxLookedAt; fd++) {
      const address = addressOf(fd);
      if (address !== null && isListening(fd) && isIt(address)) return new ListeningSocket(fd, address);
    }
    return null;
  }

  // law unix/ListeningSocket.stop: unix/listening_socket, ucx/listener
  /**
   * Frees the port, and refuses connections. The number stays taken: by a descriptor to which nothing ever happens, in
   * the same sets, so that the owner can remove and close it as its own.
   */
  stop(): void {
    const { epoll_create1, epoll_ctl, dup3, close } = libc().files;
    using arena = new NativeArena();
    const { address } = arena.bytes(16); // an epoll_event without events
    const inert = epoll_create1(EPOLL.CLOEXEC);
    if (inert < 0) return; // no descriptor is left: it goes on listening
    dup3(inert, this.#fd, EPOLL.CLOEXEC);
    close(inert);
    for (const set of this.#sets) epoll_ctl(set, EPOLL_CTL.ADD, this.#fd, address);
    this.#last = this.#connections();
  }

  // law unix/ListeningSocket.endConnections: unix/listening_socket, ucx/listener
  /** Ends the connections that its owner has accepted, which learns of that. @returns how many there are */
  endConnections(): number {
    let count = 0;
    for (const [fd, peer] of this.#connections()) {
      if (this.#last !== null && this.#last.get(fd) !== peer) continue;
      libc().sockets.shutdown(fd, SHUT.RDWR);
      count++;
    }
    return count;
  }

  /** The connections to its address, by number, with the address of their other side. */
  #connections(): Map<number, string> {
    const found = new Map<number, string>();
    for (const fd of new Set(this.#sets.flatMap(membersOf))) {
      const address = addressOf(fd);
      if (address === null || !this.#common.every((byte, i) => byte === address[i]) || isListening(fd)) continue;
      found.set(fd, String(addressOf(fd, "getpeername")));
    }
    return found;
  }
}

/** The local or the other address of a socket of the internet; null if it is none, or not connected. */
function addressOf(fd: number, which: "getsockname" | "getpeername" = "getsockname"): Uint8Array | null {
  using arena = new NativeArena();
  const [length, storage] = [arena.out("u32"), arena.bytes(storageBytes)];
  length.value = storageBytes;
  if (libc().sockets[which](fd, storage.address, length.$address) !== 0) return null;
  return internet.has(storage.bytes[0] ?? 0) ? storage.bytes.slice(0, length.value) : null;
}

function isListening(fd: number): boolean {
  using arena = new NativeArena();
  const [flag, length] = [arena.out("i32"), arena.out("u32")];
  length.value = 4;
  const { getsockopt } = libc().sockets;
  return getsockopt(fd, SOL.SOCKET, SO.ACCEPTCONN, flag.$address, length.$address) === 0 && flag.value === 1;
}
