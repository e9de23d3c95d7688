/**
 * Messages to other processes and machines, over UCX.
 *
 * @module
 */
export {
  type AtomicOperation,
  type AtomicOptions,
  type CloseOptions,
  type CloseReason,
  type CloseWorkerOptions,
  type ConnectOptions,
  type HostAndPort,
  type LimitOptions,
  type ListenerAddress,
  type ListenLimits,
  type ListenOptions,
  type MessageLimits,
  type PlaceOptions,
  type ProgressMode,
  type RawStream,
  type Receivable,
  type ReceiveArrayOptions,
  type Received,
  type ReceiveManyOptions,
  type ReceiveOptions,
  type ReceiveSyncOptions,
  type Secret,
  SecretError,
  type Sendable,
  type SendMessageOptions,
  type SendOptions,
  type SendSyncOptions,
  Ucx,
  UcxActiveMessage,
  UcxEndpoint,
  UcxError,
  UcxListener,
  UcxMemoryRegion,
  UcxMessage,
  type UcxOptions,
  UcxRemoteKey,
  UcxWorker,
  type WorkerLimits,
  type WorkerOptions,
} from "../ucx/mod.ts";
export type { ForeignArray } from "../view/mod.ts";
export { FfiError, LibraryNotFoundError, type LoadAttempt, SystemError } from "../ffi/mod.ts";
