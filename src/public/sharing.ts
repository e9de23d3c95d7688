/**
 * Memory and files shared with other processes on the same machine.
 *
 * @module
 */
export {
  type BufferDescriptor,
  type ImportBufferOptions,
  MemoryChannel,
  type ReceiveValueOptions,
  type Shareable,
  type SharedResource,
} from "../memory/mod.ts";
export type { IpcHandle } from "../device/mod.ts";
export {
  FileDescriptor,
  type UnixConnectOptions,
  UnixListener,
  type UnixListenOptions,
  type UnixMessage,
  type UnixPeer,
  type UnixReceiveOptions,
  UnixSocket,
  type WaitOptions,
} from "../unix/mod.ts";
export { CudaError } from "../driver/mod.ts";
export { SystemError } from "../ffi/mod.ts";
