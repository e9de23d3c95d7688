/**
 * A native object that others still need when its user closes it: it is destroyed once nobody does.
 *
 * @module
 */

/** Counts who retains an object, and destroys it when it has been closed and nobody retains it any more. */
export class ReferenceCount {
  readonly #destroy: () => void;
  #count = 0;
  #closed = false;
  #destroyed = false;

  /** @param destroy called once */
  constructor(destroy: () => void) {
    this.#destroy = destroy;
  }

  /** Whether `close` has been called: nobody new may use the object. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Whether the object is gone. */
  get isDestroyed(): boolean {
    return this.#destroyed;
  }

  /** Retains the object until the result is disposed of; disposing of it again does nothing. */
  retained(): Disposable {
    this.retain();
    return new Retained(this);
  }

  /** Retains the object until `release` is called, which must be once. For frequent calls: it allocates nothing. */
  retain(): void {
    this.#count++;
  }

  /** Ends one `retain`. */
  release(): void {
    this.#count--;
    this.#destroyIfUnused();
  }

  /** Destroys the object as soon as nobody retains it. Closing twice is harmless. */
  close(): void {
    this.#closed = true;
    this.#destroyIfUnused();
  }

  #destroyIfUnused(): void {
    if (!this.#closed || this.#count > 0 || this.#destroyed) return;
    this.#destroyed = true;
    this.#destroy();
  }
}

/** One `retain`, which ends once however often it is disposed of. */
class Retained implements Disposable {
  #references: ReferenceCount | null;

  constructor(references: ReferenceCount) {
    this.#references = references;
  }

  [Symbol.dispose](): void {
    const references = this.#references;
    this.#references = null;
    references?.release();
  }
}
