/**
 * What a context has of UCX. It outlives the `Ucx`, which may be dropped without having been closed.
 *
 * @module
 */
import { closeDropped, type DroppedState } from "./finalizer.ts";
import type { UcpFunctions } from "./library.ts";

/** A worker, as its context knows it. */
interface OpenWorker {
  abort(): void;
}

/** A context of UCX, and the workers of it that are not closed. */
export class ContextResources implements DroppedState {
  readonly kind = "Ucx";
  readonly madeAt: string;
  /** The context, as UCX knows it. */
  readonly handle: bigint;
  readonly #ucp: UcpFunctions;
  /** By what they have of UCX: it is given back here if the worker itself was collected. */
  readonly #workers = new Map<DroppedState, WeakRef<OpenWorker>>();
  readonly #kept: { close(): void }[] = [];
  /** Whether UCX could not give a worker back: its context has to stay then. */
  #hasStuckWorker = false;
  #isClosed = false;

  constructor(ucp: UcpFunctions, handle: bigint, madeAt: string) {
    this.#ucp = ucp;
    this.handle = handle;
    this.madeAt = madeAt;
  }

  /** Whether it is closed. */
  get closed(): boolean {
    return this.#isClosed;
  }

  /** Closes something with the context. */
  keep<T extends { close(): void }>(one: T): T {
    this.#kept.push(one);
    return one;
  }

  /** Takes on a worker. */
  add(resources: DroppedState, worker: OpenWorker): void {
    this.#workers.set(resources, new WeakRef(worker));
  }

  /** A worker is closed. @param isGone whether it is gone, or has to stay as long as the process */
  forget(resources: DroppedState, isGone: boolean): void {
    this.#workers.delete(resources);
    this.#hasStuckWorker ||= !isGone;
  }

  // law ucx/ContextResources.close: ucx/endpoint, ucx/dropped, ucx/lifecycle
  /** Frees the context, after closing the workers that are still open without waiting for their peers. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const [resources, reference] of this.#workers) {
      reference.deref()?.abort();
      if (!resources.closed) closeDropped(resources); // it was collected, or could not be made
    }
    if (!this.#hasStuckWorker) this.#ucp.opening.ucp_cleanup(this.handle);
    for (const one of this.#kept) one.close();
  }
}
