/**
 * Finalizing objects that were dropped without being closed, at almost no cost for those that were closed.
 *
 * @module
 */

/** State that outlives a registered object. It must not reference the object, which would then never be collected. */
export interface FinalizerState {
  /** Whether the object was closed, so that nothing is left to finalize. */
  readonly closed: boolean;
}

/** How many objects may await registration. */
const enoughYoung = 64;

/**
 * A FinalizationRegistry that registers an object only at the end of the event-loop turn in which it was made. Most
 * objects are closed by then, and for some of them a registration costs as much as everything else done for them.
 *
 * An object closed later stays registered, and is found closed when it is collected. Unregistering it would need a
 * token, which makes each registration take three to ten times as long.
 */
export class DeferredFinalizer<State extends FinalizerState> {
  readonly #registry: FinalizationRegistry<State>;
  /** Objects made this turn, and the state of each. */
  readonly #young: WeakKey[] = [];
  readonly #states: State[] = [];
  readonly #registerLater = (): void => this.#registerAll();

  // law ffi/DeferredFinalizer.constructor: memory/collection
  /** @param collected called with the state of an object that was collected without having been closed */
  constructor(collected: (state: State) => void) {
    this.#registry = new FinalizationRegistry((state) => {
      if (!state.closed) collected(state);
    });
  }

  // law ffi/DeferredFinalizer.register: memory/collection
  /** Registers an object, whose state reports `closed` once it is closed. */
  register(object: WeakKey, state: State): void {
    this.#states.push(state);
    const young = this.#young.push(object);
    if (young === 1) queueMicrotask(this.#registerLater);
    if (young === enoughYoung) this.#registerAll();
  }

  // law ffi/DeferredFinalizer.registerAll: memory/collection
  #registerAll(): void {
    // A callback, not a loop: a loop leaves the last object where a collector that scans the stack finds it for long.
    this.#young.forEach((object, i) => {
      const state = this.#states[i];
      if (state !== undefined && !state.closed) this.#registry.register(object, state);
    });
    this.#young.length = 0; // emptied, not replaced: a collector that scans the stack may still find the array there
    this.#states.length = 0;
  }
}
