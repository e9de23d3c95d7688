/**
 * Descriptors of processes: readable once the process has ended.
 *
 * @module
 */
import { ifPresent } from "../ffi/mod.ts";
import { FileDescriptor } from "./file_descriptor.ts";

// law unix/openProcess: unix/descriptor_set
/** Opens the process that has this PID now; null if there is none, or the system has no such descriptors. */
export function openProcess(pid: number): FileDescriptor | null {
  const fd = ifPresent(({ processes }) => processes.pidfd_open)?.(pid, 0) ?? -1;
  return fd < 0 ? null : FileDescriptor.adopt(fd);
}
