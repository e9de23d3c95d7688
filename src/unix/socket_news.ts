/**
 * Asks the system whether the runtime's own sockets have events. A runtime learns of them by an epoll descriptor, which
 * is readable when one of them is ready: asking takes half a microsecond, letting the event loop look takes 300 (Deno
 * 2.9.6, two processors).
 *
 * @module
 */
import { poll_events, pollfd } from "../../bindings/libc.ts";
import { libc, NativeArena, struct } from "../ffi/mod.ts";
import { isOfKind } from "./set_members.ts";

/** How many descriptors are checked: a thread has the runtime's from its start. */
const maxChecked = 256;

/**
 * Returns a function that tells whether sockets have events. It polls all epoll descriptors that exist now, no matter
 * who created them: foreign ones cause false positives, never false negatives. It lasts for the life of the thread, and
 * owns only the memory that it passes to `poll`.
 *
 * @returns null if there is no epoll descriptor
 */
export function findSocketNews(): (() => boolean) | null {
  const found = Array.from({ length: maxChecked }, (_, fd) => fd).filter((fd) => isOfKind(fd, "[eventpoll]"));
  return found.length === 0 ? null : newsOf(found);
}

// law unix/newsOf: unix/socket_news
/** Returns a function that tells whether any of some descriptors is readable, no matter who owns them. */
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
      else if ((entry.revents & poll_events.POLLNVAL) !== 0) entry.fd = -1; // closed: no longer polled
    }
    return isThere;
  };
}
