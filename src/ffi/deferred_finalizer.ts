/**
 * Being told by the garbage collector of what was dropped, at no cost for what was not.
 *
 * @module
 */

/** What outlives a watched object: it must not lead back to it, or it would never be collected. */
export interface FinalizerState {
  /** Whether the object's user has finished with it: nobody need be told. */
  readonly closed: boolean;
}

/** How many objects the collector is told of together. */
const enoughYoung = 64;

/**
 * A FinalizationRegistry that hears of an object at the end of the turn of the event loop in which it was made. Most
 * objects are closed by then, and telling the collector costs as much as much else that is done for them.
 *
 * What is closed later is not taken back from the collector: it is told of in the end and found closed. To take something
 * back it would have to be registered under a token, which makes each registration take three to ten times as long.
 */
export class DeferredFinalizer<Held extends FinalizerState> {
  readonly #registry: FinalizationRegistry<Held>;
  /** Objects of this turn, and what is held for each. */
  readonly #young: WeakKey[] = [];
  readonly #held: Held[] = [];
  readonly #tell = (): void => this.#tellAll();

  /** @param collected called for what was held for an object that is gone and was not closed */
  constructor(collected: (held: Held) => void) {
    this.#registry = new FinalizationRegistry((held) => {
      if (!held.closed) collected(held);
    });
  }

  /** Watches an object until it is closed: `held.closed` is true then. */
  register(object: WeakKey, held: Held): void {
    this.#held.push(held);
    const young = this.#young.push(object);
    if (young === 1) queueMicrotask(this.#tell);
    if (young === enoughYoung) this.#tellAll();
  }

  #tellAll(): void {
    // By a function: a loop leaves the last object where a collector that scans the stack finds it for long.
    this.#young.forEach((object, i) => {
      const held = this.#held[i];
      if (held !== undefined && !held.closed) this.#registry.register(object, held);
    });
    this.#young.length = 0; // emptied, not replaced: a collector that scans the stack may still find the array there
    this.#held.length = 0;
  }
}
