/**
 * The native resources of a context. They outlive the `Ucx`, which may be dropped without being closed.
 *
 * @module
 */
import { failuresOf, throwFirst } from "../ffi/mod.ts";
import { closeDropped, type DroppedState } from "./finalizer.ts";
import type { UcpFunctions } from "./library.ts";

/** A worker, as its context sees it. */
interface OpenWorker {
  abort(): void;
}

/** A UCX context and its open workers. */
export class ContextResources implements DroppedState {
  readonly kind = "Ucx";
  readonly madeAt: string;
  /** The context's UCX handle. */
  readonly handle: bigint;
  readonly #ucp: UcpFunctions;
  /** Keyed by their native resources, which are released here if the worker itself was collected. */
  readonly #workers = new Map<DroppedState, WeakRef<OpenWorker>>();
  readonly #adopted: { close(): void }[] = [];
  /** Whether UCX was not done with the memory of a worker: the context then stays for the life of the process. */
  #mustStay = false;
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

  /** Closes an object together with the context. */
  adopt<T extends { close(): void }>(one: T): T {
    this.#adopted.push(one);
    return one;
  }

  /** Adds a worker. */
  add(resources: DroppedState, worker: OpenWorker): void {
    this.#workers.set(resources, new WeakRef(worker));
  }

  /** Removes a closed worker. @param isDone whether UCX is done with all its memory: else the context has to stay */
  forget(resources: DroppedState, isDone: boolean): void {
    this.#workers.delete(resources);
    this.#mustStay ||= !isDone;
  }

  // law ucx/ContextResources.close: ucx/endpoint, ucx/dropped, ucx/lifecycle, ucx/failing_calls
  /** Closes the workers that are still open, without waiting for their peers, then frees the context. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const failures = failuresOf(this.#workers, ([resources, reference]) => {
      reference.deref()?.abort();
      if (!resources.closed) closeDropped(resources); // the worker was collected
    });
    if (!this.#mustStay) this.#ucp.opening.ucp_cleanup(this.handle);
    for (const one of this.#adopted) one.close();
    throwFirst(failures);
  }
}
