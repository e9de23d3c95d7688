/**
 * Several descriptors as one, which is readable as soon as any of them is.
 *
 * @module
 */
import { EPOLL, EPOLL_CTL, epoll_events } from "../../bindings/libc.ts";
import { attempt, libc, NativeArena, SystemError } from "../ffi/mod.ts";

/** The maximum size of a `struct epoll_event`: 12 bytes on x86-64, where it is packed, and 16 elsewhere. */
const eventBytes = 16;

/** A set of descriptors that others own. */
export class DescriptorSet {
  /** The descriptor of the set. */
  readonly fd: number;
  readonly #arena = new NativeArena();
  readonly #event = this.#arena.bytes(eventBytes);

  /** @throws {SystemError} if there are no descriptors left */
  constructor() {
    this.fd = attempt(() => libc().files.epoll_create1(EPOLL.CLOEXEC));
    if (this.fd >= 0) return;
    this.#arena.close();
    throw new SystemError("wait for descriptors", "epoll_create1", -this.fd, "Are there too many open files?");
  }

  // law unix/DescriptorSet.add: unix/descriptor_set
  /** Adds a descriptor that is not in the set yet. Closing it removes it from all sets. */
  add(fd: number): void {
    this.#event.bytes.fill(0);
    this.#event.bytes[0] = epoll_events.EPOLLIN; // the lowest byte of a little-endian field
    const { address } = this.#event;
    const code = attempt(() => libc().files.epoll_ctl(this.fd, EPOLL_CTL.ADD, fd, address));
    if (code < 0) throw new SystemError(`wait for descriptor ${fd}`, "epoll_ctl", -code, "");
  }

  /** Whether one of them is readable now. */
  hasReadable(): boolean {
    return libc().files.epoll_wait(this.fd, this.#event.address, 1, 0) > 0;
  }

  /** Closes the set. */
  close(): void {
    libc().files.close(this.fd);
    this.#arena.close();
  }
}
