/**
 * A file descriptor with an owner, which closes it once.
 *
 * @module
 */
import { checkMade, show, showAs } from "../layout/mod.ts";
import { libc } from "../ffi/mod.ts";

/** Descriptors that were not closed are closed when their object is collected. */
const finalizer = new FinalizationRegistry<number>((fd) => {
  libc().files.close(fd);
});

/**
 * An open file descriptor that this object owns: the one that hands a memory pool to another process, for example. It
 * is closed by `close`, or at the latest when the object is collected.
 */
export class FileDescriptor {
  #fd: number | null;

  private constructor(fd: number) {
    checkMade(fd, "FileDescriptor", "FileDescriptor.adopt(number)");
    this.#fd = fd;
    finalizer.register(this, fd, this);
  }

  /**
   * Takes ownership of a descriptor.
   *
   * @throws {RangeError} for a number that cannot be a descriptor
   * @throws {TypeError} for anything but a number
   */
  static adopt(fd: number): FileDescriptor {
    if (!Number.isInteger(fd) || fd < 0 || fd > 0x7fff_ffff) {
      const message = `Cannot own file descriptor ${show(fd)}: expected an integer of at least 0`;
      throw typeof fd === "number" ? new RangeError(message) : new TypeError(message);
    }
    return new FileDescriptor(fd);
  }

  /**
   * The number, for a call that uses it while this object is in use.
   *
   * @throws {TypeError} if it is closed or was taken
   */
  get number(): number {
    if (this.#fd === null) throw new TypeError("Cannot use a closed FileDescriptor");
    return this.#fd;
  }

  /** Whether it is closed or was taken. */
  get isClosed(): boolean {
    return this.#fd === null;
  }

  // law unix/FileDescriptor.take: unix/file_descriptor
  /**
   * Takes the descriptor out of this object: the caller must close it.
   *
   * @throws {TypeError} if it is closed or was taken
   */
  take(): number {
    const fd = this.number;
    this.#fd = null;
    finalizer.unregister(this);
    return fd;
  }

  /** Closes it. Closing twice is harmless: the number may be another file's by then, and is left alone. */
  close(): void {
    if (this.#fd !== null) libc().files.close(this.take());
  }

  /** Closes it. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(FileDescriptor, (descriptor) => descriptor.#fd === null ? "(closed)" : `${descriptor.#fd}`);
  }
}
