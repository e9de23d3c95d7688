/**
 * Reads what C writes to a file that it opens by name.
 *
 * @module
 */
import { MFD, SEEK } from "../../../bindings/libc.ts";
import { attempt, cString, libc, NativeArena, SystemError } from "../../ffi/mod.ts";
import { FileDescriptor } from "../../unix/mod.ts";

// law device/writtenFile: device/graph/graph
/**
 * Gives C an in-memory file to write, which is in no folder: no place for temporary files and no runtime permission is
 * needed, and nothing is left behind.
 *
 * @param write called with the file's name, which C opens
 * @throws {SystemError} if there are no descriptors left
 */
export function writtenFile(doing: string, write: (path: string) => void): string {
  const { files } = libc();
  const checked = (call: string, result: number) => {
    if (result < 0) throw new SystemError(doing, call, -result, "Are there too many open files?");
    return result;
  };
  const number = checked("memfd_create", attempt(() => files.memfd_create(cString("causeway"), MFD.CLOEXEC)));
  using _descriptor = FileDescriptor.adopt(number);
  write(`/proc/self/fd/${number}`);
  const size = checked("lseek", attempt(() => files.lseek(number, 0n, SEEK.END)));
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(size);
  const read = checked("pread", attempt(() => files.pread(number, address, BigInt(size), 0n)));
  return new TextDecoder().decode(bytes.subarray(0, read));
}
