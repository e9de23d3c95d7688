/**
 * Messages to other processes and machines, over UCX: shared memory, TCP, InfiniBand or NVLink, as libucp chooses.
 *
 * The room knows arrays and the order of their memory; no room of the spine knows it. `Ucx.open` finds libucp and makes
 * a context; the context makes workers, and a worker connects endpoints by the address of another worker, which travels
 * by any means. What is sent or received becomes contiguous memory with a promise (`message_memory.ts`): UCX
 * knows no streams, so an operation begins when `order/` says that the memory is there, in the order in which it was
 * asked for (`start_queue.ts`). Each is an `Operation` in native memory (`operation.ts`); when UCX is done with it,
 * machine code puts its number into a ring. `progress.ts` lets UCX work, in microtasks, at turns of the event loop, or
 * when its descriptor has news, and settles what the ring says has ended. Peers that end without UCX noticing are
 * noticed by `peer_liveness.ts`. Besides messages by tag there are active ones (`active_messages.ts`), memory that
 * others read and write (`remote_memory.ts`), and connections by host and port (`listener.ts`).
 *
 * A new kind of request is a method of `UcxEndpoint` or `UcxWorker` like `send` (`endpoint.ts`) and `recv`
 * (`receiver.ts`): it takes an operation and its memory, waits for its turn if it must, prepares the parameters, calls
 * UCX, and gives the answer to `Progress.begun`; the feature that it needs is asked for by `createContext` (`ucx.ts`).
 *
 * @module
 */
export {
  type AtomicOperation,
  type AtomicOptions,
  type CloseReason,
  type SendMessageOptions,
  type SendOptions,
  type SendSyncOptions,
  UcxEndpoint,
} from "./endpoint.ts";
export { UcxActiveMessage } from "./active_messages.ts";
export { UcxError } from "./error.ts";
export { type ListenOptions, UcxListener } from "./listener.ts";
export type { LimitOptions } from "./limit.ts";
export { libucp } from "./library.ts";
export type { Receivable, Sendable } from "./message_memory.ts";
export { type Received, type ReceiveOptions, type ReceiveSyncOptions, UcxMessage } from "./receiver.ts";
export { UcxMemoryRegion, UcxRemoteKey } from "./remote_memory.ts";
export type { HostAndPort } from "./socket_address.ts";
export { Ucx, type UcxOptions } from "./ucx.ts";
export type { ProgressMode } from "./progress.ts";
export { type ConnectOptions, UcxWorker, type WorkerOptions } from "./worker.ts";
