/**
 * Messages to other processes and machines, by UCX.
 *
 * @module
 */
export {
  type AtomicOperation,
  type AtomicOptions,
  type CloseReason,
  type ConnectOptions,
  type HostAndPort,
  type LimitOptions,
  type ListenOptions,
  type ProgressMode,
  type Receivable,
  type Received,
  type ReceiveOptions,
  type ReceiveSyncOptions,
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
  type WorkerOptions,
} from "../ucx/mod.ts";
