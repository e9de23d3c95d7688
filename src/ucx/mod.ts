/**
 * Messages to other processes and machines, over UCX: shared memory, TCP, InfiniBand or NVLink, as libucp chooses.
 *
 * The room knows arrays and the order of their memory; no room of the spine knows it. `Ucx.open` finds libucp and makes a
 * context; the context makes workers, and a worker connects endpoints by the address of another worker, which travels
 * by any means. What is sent or received becomes contiguous memory with a promise (`message_memory.ts`): UCX
 * knows no streams, so an operation begins when `order/` says that the memory is there, in the order in which it was
 * asked for (`start_queue.ts`). What UCX has begun is followed to its end by `progress.ts`, which polls the worker at
 * turns of the event loop and settles promises there. Peers that end without UCX noticing are noticed by
 * `peer_liveness.ts`.
 *
 * A new kind of request is a method of `UcxEndpoint` or `UcxWorker` like `send` (`endpoint.ts`) and `recv` (`worker.ts`): it
 * checks and takes the memory, is added to the start queue, writes its parameters, and is followed; the feature that it
 * needs is asked for by `createContext` (`ucx.ts`).
 *
 * @module
 */
export { type CloseReason, type SendOptions, UcxEndpoint } from "./endpoint.ts";
export { UcxError } from "./error.ts";
export { libucp } from "./library.ts";
export type { Receivable, Sendable } from "./message_memory.ts";
export { Ucx, type UcxOptions } from "./ucx.ts";
export { type ConnectOptions, type Received, type ReceiveOptions, UcxWorker } from "./worker.ts";
