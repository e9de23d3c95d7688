/**
 * The seam to the runtime: how native code is called from Deno and from Bun. Every room that calls native code does so
 * through here, and knows neither runtime.
 *
 * The room knows what C looks like (`bindings/`) and no library by name but the C library. Loading it opens nothing.
 * `ffiPort` chooses the current runtime's adapter at its first use (`deno.ts`, `bun.ts`); `openLibrary` finds a library
 * and binds each group of its symbol table at first use; `libc` is the one that is always there. C reads and writes
 * memory of a `NativeArena`, whose structs `struct` presents as objects with a property for each field; a `SlabPool` is
 * for structs that are allocated and freed again and again. Foreign memory is copied by `readForeign`, or viewed
 * through the port. The runtime's files, and Blobs, are read a range at a time (`file_contents.ts`).
 *
 * Owners of native resources find here what they need to close them in any case: `DeferredFinalizer` for objects that
 * were dropped, `runAll` for several closes, some of which may fail, `reportUncaught` for errors that no caller can
 * catch.
 *
 * @module
 */
export { endsBeyondMemory, exactAddress, isAddress, isFarFromEnds, lowHalf } from "./address.ts";
export { allocate, NativeArena, type Out } from "./arena.ts";
export { cString, decodeText, readCString, readField, readString } from "./c_string.ts";
export { DeferredFinalizer, type FinalizerState } from "./deferred_finalizer.ts";
export { littleEndian } from "./endian.ts";
export {
  constantName,
  FfiError,
  LibraryNotFoundError,
  type LoadAttempt,
  resizableBufferError,
  tooLongForArray,
} from "./errors.ts";
export {
  blobName,
  checkPath,
  missingFile,
  namingErrors,
  openFile,
  readBlob,
  sizeOfBlob,
  systemErrorOf,
} from "./file_contents.ts";
export { describeHostMemory } from "./host_memory.ts";
export { ifPresent, type Libc, libc } from "./libc.ts";
export { type LibraryDescription, type NativeLibrary, openLibrary } from "./library.ts";
export { nodeBuiltin } from "./node_builtin.ts";
export { ownBuffer, ownLength, ownOffset, ownSize } from "./own_extent.ts";
export { type FfiPort, ffiPort, type NativeCallback, type SocketWatch } from "./port.ts";
export { maxForeignBytes, readForeign } from "./read_foreign.ts";
export { reportUncaught, wantsLeakReports } from "./report_uncaught.ts";
export { failuresOf, runAll, throwFirst } from "./run_all.ts";
export { SlabPool, type Slot } from "./slab.ts";
export { type FieldValue, layoutOf, roundUp, struct, type StructView } from "./struct.ts";
export { attempt, SystemError } from "./system_error.ts";
export { readTextFile, writeTextFile } from "./text_file.ts";
export type { Functions, HandleArgument, MemoryArgument, NativeFunction } from "./types.ts";
