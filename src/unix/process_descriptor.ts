/**
 * Descriptors of processes: readable once the process has ended.
 *
 * @module
 */
import { FfiError, libc } from "../ffi/mod.ts";
import { FileDescriptor } from "./file_descriptor.ts";

// law unix/openProcess: unix/descriptor_set
/** Opens the process that has this PID now; null if there is none, or the system has no such descriptors. */
export function openProcess(pid: number): FileDescriptor | null {
  const open = pidfdOpen();
  const fd = open === null ? -1 : open(pid, 0);
  return fd < 0 ? null : FileDescriptor.adopt(fd);
}

function pidfdOpen(): ((pid: number, flags: number) => number) | null {
  try {
    return libc().processes.pidfd_open;
  } catch (error) {
    if (error instanceof FfiError) return null; // an older glibc
    throw error;
  }
}
