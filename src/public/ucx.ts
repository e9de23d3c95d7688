/**
 * Messages to other processes and machines, by UCX.
 *
 * @module
 */
export {
  type CloseReason,
  type ConnectOptions,
  type ProgressMode,
  type Receivable,
  type Received,
  type ReceiveOptions,
  type ReceiveSyncOptions,
  type Sendable,
  type SendOptions,
  type SendSyncOptions,
  Ucx,
  UcxEndpoint,
  UcxError,
  type UcxOptions,
  UcxWorker,
  type WorkerOptions,
} from "../ucx/mod.ts";
