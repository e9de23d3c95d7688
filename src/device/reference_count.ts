/**
 * A native object that may still be needed when its user closes it: it is destroyed once it is not.
 *
 * @module
 */

/** Counts the references to an object, and destroys it once it is closed and no longer retained. */
export class ReferenceCount {
  readonly #destroy: () => void;
  #count = 0;
  #closed = false;
  #destroyed = false;

  /** @param destroy called once */
  constructor(destroy: () => void) {
    this.#destroy = destroy;
  }

  /** Whether `close` has been called: the object may not be used any more. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Whether the object has been destroyed. */
  get isDestroyed(): boolean {
    return this.#destroyed;
  }

  // law device/ReferenceCount.retained: device/reference_count
  /** Retains the object until the result is disposed; disposing it again does nothing. */
  retained(): Disposable {
    this.retain();
    return new Retained(this);
  }

  // law device/ReferenceCount.retain: device/reference_count
  /** Retains the object until `release` is called, exactly once. For frequent calls: it allocates nothing. */
  retain(): void {
    this.#count++;
  }

  // law device/ReferenceCount.release: device/reference_count
  /** Ends one `retain`. */
  release(): void {
    this.#count--;
    this.#destroyIfUnused();
  }

  // law device/ReferenceCount.close: device/reference_count
  /** Destroys the object as soon as it is not retained. Closing twice is harmless. */
  close(): void {
    this.#closed = true;
    this.#destroyIfUnused();
  }

  // law device/ReferenceCount.destroyIfUnused: device/reference_count
  #destroyIfUnused(): void {
    if (!this.#closed || this.#count > 0 || this.#destroyed) return;
    this.#destroyed = true;
    this.#destroy();
  }
}

/** One `retain`, which ends once however often it is disposed. */
class Retained implements Disposable {
  #references: ReferenceCount | null;

  constructor(references: ReferenceCount) {
    this.#references = references;
  }

  // law device/Retained.Symbol.dispose: device/reference_count
  [Symbol.dispose](): void {
    const references = this.#references;
    this.#references = null;
    references?.release();
  }
}
