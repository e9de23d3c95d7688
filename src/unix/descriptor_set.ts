/**
 * Descriptors as one: it can be read as soon as one of them can be.
 *
 * @module
 */
import { EPOLL, EPOLL_CTL, epoll_events } from "../../bindings/libc.ts";
import { FfiError, libc, NativeArena } from "../ffi/mod.ts";

/** Bytes that a `struct epoll_event` takes at most: 12 on x86-64, where it is packed, and 16 elsewhere. */
const eventBytes = 16;

/** A set of descriptors that others own. */
export class DescriptorSet {
  /** The descriptor of the set. */
  readonly fd: number;
  readonly #arena = new NativeArena();
  readonly #event = this.#arena.bytes(eventBytes);

  /** @throws {FfiError} if there are no descriptors left */
  constructor() {
    this.fd = libc().files.epoll_create1(EPOLL.CLOEXEC);
    if (this.fd >= 0) return;
    this.#arena.close();
    throw new FfiError("Cannot wait for descriptors: epoll_create1 failed. Are there too many open files?");
  }

  // law unix/DescriptorSet.add: unix/descriptor_set
  /** Adds one that is in no set of the same number. It leaves all sets by itself when it is closed. */
  add(fd: number): void {
    this.#event.bytes.fill(0);
    this.#event.bytes[0] = epoll_events.EPOLLIN; // the lowest byte of a little-endian field
    const { address } = this.#event;
    if (libc().files.epoll_ctl(this.fd, EPOLL_CTL.ADD, fd, address) !== 0) {
      throw new FfiError(`Cannot wait for descriptor ${fd}: epoll_ctl failed`);
    }
  }

  /** Whether one of them can be read now. */
  hasReadable(): boolean {
    return libc().files.epoll_wait(this.fd, this.#event.address, 1, 0) > 0;
  }

  /** Closes the set. */
  close(): void {
    libc().files.close(this.fd);
    this.#arena.close();
  }
}
