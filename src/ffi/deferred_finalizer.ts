/**
 * Finalizing objects that were dropped without being closed, at almost no cost for those that were closed.
 *
 * @module
 */

/** What outlives a registered object. It must not refer back to the object, which would never be collected then. */
export interface FinalizerState {
  /** Whether the object was closed: there is nothing left to finalize. */
  readonly closed: boolean;
}

/** How many objects may wait to be registered. */
const enoughYoung = 64;

/**
 * A FinalizationRegistry with which an object is registered only at the end of the turn of the event loop in which it
 * was made. Most objects are closed by then, and a registration costs as much as all else that is done for some of
 * them.
 *
 * What is closed later stays registered, and is found closed when it is collected. To be unregistered it would need a
 * token, which makes each registration take three to ten times as long.
 */
export class DeferredFinalizer<State extends FinalizerState> {
  readonly #registry: FinalizationRegistry<State>;
  /** Objects of this turn, and the state of each. */
  readonly #young: WeakKey[] = [];
  readonly #states: State[] = [];
  readonly #registerLater = (): void => this.#registerAll();

  // law ffi/DeferredFinalizer.constructor: memory/collection
  /** @param collected called with the state of an object that was collected and had not been closed */
  constructor(collected: (state: State) => void) {
    this.#registry = new FinalizationRegistry((state) => {
      if (!state.closed) collected(state);
    });
  }

  // law ffi/DeferredFinalizer.register: memory/collection
  /** Registers an object; its state says `closed` once it is. */
  register(object: WeakKey, state: State): void {
    this.#states.push(state);
    const young = this.#young.push(object);
    if (young === 1) queueMicrotask(this.#registerLater);
    if (young === enoughYoung) this.#registerAll();
  }

  // law ffi/DeferredFinalizer.registerAll: memory/collection
  #registerAll(): void {
    // By a function: a loop leaves the last object where a collector that scans the stack finds it for long.
    this.#young.forEach((object, i) => {
      const state = this.#states[i];
      if (state !== undefined && !state.closed) this.#registry.register(object, state);
    });
    this.#young.length = 0; // emptied, not replaced: a collector that scans the stack may still find the array there
    this.#states.length = 0;
  }
}
