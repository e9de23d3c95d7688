/**
 * Whether something has come for sockets of the runtime's own, asked of the system. A runtime learns of them by an epoll
 * descriptor, which can be read when one of them can be used: to ask takes half a microsecond, and to have the event
 * loop look 300 (Deno 2.9.6, two processors).
 *
 * @module
 */
import { poll_events, pollfd } from "../../bindings/libc.ts";
import { cString, libc, NativeArena, struct } from "../ffi/mod.ts";

/** How many descriptors are looked at: a thread has the runtime's from its start. */
const most = 256;
/** What the system calls an epoll descriptor. */
const called = "anon_inode:[eventpoll]";

/**
 * What tells whether something has come for sockets. It asks all epoll descriptors that there are now, whoever has made
 * them: those of others make it say so too often, never too seldom. It is for the life of the thread, and owns nothing
 * but the memory of the question.
 *
 * @returns null if there is no such descriptor
 */
export function findSocketNews(): (() => boolean) | null {
  const found = Array.from({ length: most }, (_, fd) => fd).filter(isEpoll);
  return found.length === 0 ? null : newsOf(found);
}

// law unix/newsOf: unix/socket_news
/** What tells whether something can be read of some descriptors, whoever owns them. */
export function newsOf(found: readonly number[]): () => boolean {
  const { size, over } = struct(pollfd);
  const { address, bytes } = new NativeArena().bytes(size * found.length);
  const entries = found.map((fd, i) => {
    const entry = over(bytes.buffer, address - BigInt(bytes.byteOffset), bytes.byteOffset + i * size);
    entry.fd = fd;
    entry.events = poll_events.POLLIN;
    return entry;
  });
  const { poll } = libc().sockets;
  return () => {
    if (poll(address, BigInt(entries.length), 0) <= 0) return false;
    let isThere = false;
    for (const entry of entries) {
      if ((entry.revents & poll_events.POLLIN) !== 0) isThere = true;
      else if ((entry.revents & poll_events.POLLNVAL) !== 0) entry.fd = -1; // closed: it is not asked about any more
    }
    return isThere;
  };
}

function isEpoll(fd: number): boolean {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(called.length + 1);
  const length = libc().files.readlink(cString(`/proc/self/fd/${fd}`), address, BigInt(bytes.length));
  return Number(length) === called.length && new TextDecoder().decode(bytes.subarray(0, called.length)) === called;
}
