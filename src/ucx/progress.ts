/**
 * Progress: what turns a begun operation into a settled promise, on the JavaScript thread.
 *
 * @module
 */
import { ucs_status_t } from "../../bindings/ucp_types.ts";
import { nodeBuiltin } from "../ffi/mod.ts";
import { UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { advice, type Operation, readStatusPointer } from "./request.ts";

/** Calls of ucp_worker_progress in one turn of the event loop, as long as they find something to do. */
const spins = 64;
/** How long to poll at every turn of the event loop before sleeping between polls, in milliseconds. */
const busyFor = 20;
/** How often to serve connections while nothing is under way, in milliseconds. */
const heartbeat = 10;

/** How an operation is to be followed. */
export interface Begun<T> {
  /** The function of libucp, for messages. */
  readonly call: string;
  /** Unpins the memory that UCX reads or writes. Called once, when UCX is done with it. */
  readonly release: () => void;
  /** The result if the operation completed at once, before a request was made. */
  readonly immediate: () => T;
  /** The result from a finished request. */
  readonly result: (request: bigint) => T;
  /** Cancels the operation. */
  readonly signal?: AbortSignal | undefined;
  /** Why the operation had to end, if it is known better than UCX's status says. */
  readonly reason?: () => UcxError | undefined;
}

/**
 * Polls a worker while operations are under way: at each turn of the event loop at first, once a millisecond after 20
 * ms without news. With nothing under way it only keeps a heartbeat, in which UCX answers its peers; it does not keep
 * the process alive.
 */
export class Progress {
  readonly #ucp: UcpFunctions;
  readonly #worker: bigint;
  readonly #timers: ReturnType<typeof nodeBuiltin<"node:timers">> = nodeBuiltin("node:timers");
  readonly #operations = new Set<Operation>();
  #polling = false;
  #stopped = false;
  #lastEvent = 0;
  #watching = false;
  #pulse: ReturnType<typeof import("node:timers").setTimeout> | undefined;

  constructor(ucp: UcpFunctions, worker: bigint) {
    this.#ucp = ucp;
    this.#worker = worker;
  }

  /** Follows what a function of type `ucs_status_ptr_t` has begun. */
  follow<T>(pointer: bigint, { call, release, immediate, result, signal, reason }: Begun<T>): Promise<T> {
    const answer = readStatusPointer(pointer);
    if (answer.kind !== "pending") release();
    if (answer.kind === "failed") return Promise.reject(new UcxError(call, answer.status, advice(answer.status)));
    if (answer.kind === "done") return Promise.resolve(immediate());
    const { request } = answer;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const operation: Operation = {
      request,
      reject,
      finish: (status) => {
        release();
        if (status === ucs_status_t.UCS_OK) resolve(result(request));
        else reject(operation.cancelled ?? reason?.() ?? new UcxError(call, status, advice(status)));
      },
    };
    this.#operations.add(operation);
    const cancel = () => this.cancel(operation, signal?.reason);
    signal?.addEventListener("abort", cancel, { once: true });
    promise.finally(() => signal?.removeEventListener("abort", cancel)).catch(() => {});
    this.#lastEvent = performance.now();
    this.#poll();
    return promise;
  }

  /** Asks UCX to end an operation early; it settles at a later poll, with the reason if it could be stopped. */
  cancel(operation: Operation, reason: unknown): void {
    if (this.#stopped || !this.#operations.has(operation)) return;
    operation.cancelled = reason;
    this.#ucp.request.ucp_request_cancel(this.#worker, operation.request);
  }

  /** Lets the worker work, and settles what has ended. */
  turn(): void {
    if (this.#stopped) return;
    const { ucp_worker_progress } = this.#ucp.worker;
    for (let i = 0; i < spins && ucp_worker_progress(this.#worker) !== 0; i++) this.#lastEvent = performance.now();
    for (const operation of this.#operations) {
      const status = this.#ucp.request.ucp_request_check_status(operation.request);
      if (status === ucs_status_t.UCS_INPROGRESS) continue;
      this.#operations.delete(operation);
      this.#lastEvent = performance.now();
      try {
        operation.finish(status);
      } finally {
        this.#ucp.request.ucp_request_free(operation.request);
      }
    }
  }

  /** Keeps a heartbeat from now on. */
  watch(): void {
    this.#watching = true;
    if (!this.#polling) this.#beat();
  }

  /** Cancels everything, drives the worker until it is quiet or `patience` milliseconds have passed, and stops. */
  stop(reason: unknown, patience = 200): void {
    for (const operation of this.#operations) this.cancel(operation, reason);
    const deadline = performance.now() + patience;
    while (this.#operations.size > 0 && performance.now() < deadline) this.turn();
    this.#stopped = true;
    this.#timers.clearTimeout(this.#pulse);
    // What UCX would not give back keeps its memory: UCX may still write to it. Its promise is settled all the same.
    for (const operation of this.#operations) operation.reject(reason);
  }

  #poll(): void {
    if (this.#polling || this.#stopped) return;
    this.#polling = true;
    this.#timers.clearTimeout(this.#pulse);
    const next = () => {
      this.turn();
      if (this.#stopped || this.#operations.size === 0) {
        this.#polling = false;
        if (this.#watching) this.#beat();
      } else if (performance.now() - this.#lastEvent < busyFor) this.#timers.setImmediate(next);
      else this.#timers.setTimeout(next, 1);
    };
    this.#timers.setImmediate(next);
  }

  #beat(): void {
    this.#timers.clearTimeout(this.#pulse);
    this.#pulse = this.#timers.setTimeout(() => {
      this.turn();
      if (this.#watching && !this.#polling && !this.#stopped) this.#beat();
    }, heartbeat);
    this.#pulse.unref();
  }
}
