/**
 * Messages to other processes and machines, by UCX.
 *
 * @module
 */
export {
  type CloseReason,
  type ConnectOptions,
  type Receivable,
  type Received,
  type ReceiveOptions,
  type Sendable,
  type SendOptions,
  Ucx,
  UcxEndpoint,
  UcxError,
  type UcxOptions,
  UcxWorker,
} from "../ucx/mod.ts";
