/**
 * Messages to other processes and machines, over UCX: shared memory, TCP, InfiniBand or NVLink, as libucp chooses.
 *
 * The room knows arrays and the order of their memory; only the command line and the public files know it. `Ucx.open`
 * finds libucp and creates a context, the context creates workers, and a worker's `connections.ts` are endpoints and
 * listeners (`listen/`: UCX accepts, or our own sockets with a secret). Whatever is sent or received is contiguous
 * memory with a promise (`message_memory.ts`, `message_list.ts`): UCX knows no streams, so an operation begins when
 * `order/` reports that its memory is ready, in its turn (`start_queue.ts`); memory that other processes cannot map is
 * copied to memory that they can (`pool_staging.ts`, `pending_copies.ts`). Each is an `Operation` in native memory;
 * when UCX is done with it, machine code puts its number into a ring. `progress.ts` drives UCX, `completions.ts`
 * settles the operations that the ring reports as completed, and `buffers_in_use.ts` finds memory that was transferred.
 * `peer_liveness.ts` detects peers that end without UCX noticing; `keepalive_timer.ts` keeps UCX from waking workers to
 * check on peers whose end the system reports.
 *
 * An endpoint is a lifecycle (`endpoint_lifecycle.ts`) and operations, by kind, over `endpoint_operations.ts`: messages
 * by tag (`tag_sender.ts`, `receiver.ts`; of several parts `message_parts.ts`, `parts_receiver.ts`), active messages
 * (`active_messages/`), arrays (`arrays.ts`), remote memory (`remote_access.ts`), and UCX's stream (`raw_stream.ts`),
 * which `stream/` turns into WHATWG streams. What two sides agree on beyond UCX is a `Protocol` (`protocol.ts`).
 *
 * A new kind of request is a class like `RawStream` (`raw_stream.ts`): over `endpoint_operations.ts` it takes an
 * operation and its memory, waits for its turn if it must, prepares the parameters, calls UCX, and passes the result to
 * `Completions.begun` (`begunForeign` if UCX allocates the request). `UcxEndpoint` (`endpoint.ts`) gets a method or
 * getter that leads to it, `bindings/ucp.ts` the function, and `features` or `remoteFeatures` in `ucx.ts` the feature
 * that it needs. `TagSender` is the same, tuned: no closure is passed, nor the address of JavaScript's memory taken.
 *
 * @module
 */
export { UcxEndpoint } from "./endpoint.ts";
export type { CloseOptions, CloseReason } from "./endpoint_lifecycle.ts";
export type { AtomicOperation, AtomicOptions } from "./remote_access.ts";
export type { SendMessageOptions } from "./active_messages/message_sender.ts";
export type { PlaceOptions } from "./new_memory.ts";
export type { SendOptions, SendSyncOptions } from "./tag_sender.ts";
export type { ReceiveArrayOptions } from "./arrays.ts";
export { UcxActiveMessage } from "./active_messages/active_messages.ts";
export { UcxError } from "./error.ts";
export type { MessageLimits, WorkerLimits } from "./active_messages/message_limits.ts";
export { type ListenLimits, type ListenOptions, UcxListener } from "./listen/listener.ts";
export { type Secret, SecretError } from "./listen/secret_handshake.ts";
export type { LimitOptions } from "./limit.ts";
export { libucp } from "./library.ts";
export type { Receivable, Sendable } from "./message_memory.ts";
export { type Received, type ReceiveOptions, type ReceiveSyncOptions, UcxMessage } from "./receiver.ts";
export type { ReceiveManyOptions } from "./parts_receiver.ts";
export type { RawStream } from "./raw_stream.ts";
export { UcxMemoryRegion, UcxRemoteKey } from "./remote_memory.ts";
export type { HostAndPort } from "./listen/socket_address.ts";
export { Ucx, type UcxOptions } from "./ucx.ts";
export type { ProgressMode } from "./progress.ts";
export type { ConnectOptions, ListenerAddress } from "./connections.ts";
export { type CloseWorkerOptions, UcxWorker, type WorkerOptions } from "./worker.ts";
