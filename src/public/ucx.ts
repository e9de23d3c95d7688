/**
 * Messages to other processes and machines, by UCX.
 *
 * @module
 */
export {
  type CloseReason,
  type ConnectOptions,
  type HostAndPort,
  type ListenOptions,
  type ProgressMode,
  type Receivable,
  type Received,
  type ReceiveMessageOptions,
  type ReceiveOptions,
  type ReceiveSyncOptions,
  type Sendable,
  type SendOptions,
  type SendSyncOptions,
  Ucx,
  UcxEndpoint,
  UcxError,
  UcxListener,
  UcxMessage,
  type UcxOptions,
  UcxWorker,
  type WorkerOptions,
} from "../ucx/mod.ts";
