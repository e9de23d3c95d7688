/**
 * How many descriptors this process may still open.
 *
 * @module
 */
import { EFD } from "../../bindings/libc.ts";
import { attempt, libc, SystemError } from "../ffi/mod.ts";

// law unix/checkDescriptorsLeft: unix/descriptors_left
/**
 * Checks that there are descriptors left for a library that ends the process without them, by opening that many.
 *
 * @param doing what they are for, as in "Cannot ..."
 * @throws {SystemError} EMFILE if this process may open no more, ENFILE if the system has none
 */
export function checkDescriptorsLeft(count: number, doing: string): void {
  const { eventfd, close } = libc().files;
  const opened: number[] = [];
  try {
    while (opened.length < count) {
      const fd = attempt(() => eventfd(0, EFD.CLOEXEC));
      if (fd >= 0) opened.push(fd);
      else {
        const hint = `It takes ${count} descriptors, and ${opened.length} are left: close some, or raise ulimit -n`;
        throw new SystemError(doing, "eventfd", -fd, hint);
      }
    }
  } finally {
    for (const fd of opened) close(fd);
  }
}
