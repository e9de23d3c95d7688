/**
 * A native object that others still need when its user closes it: it is destroyed once nobody does.
 *
 * @module
 */

/** Counts who needs an object, and destroys it when it has been closed and the last of them is gone. */
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

  /** Keeps the object until the returned function is called; calling it again does nothing. */
  hold(): () => void {
    let holding = true;
    this.retain();
    return () => {
      if (!holding) return;
      holding = false;
      this.release();
    };
  }

  /** Keeps the object until `release` is called, once for each time. For who calls it once for certain: it makes nothing. */
  retain(): void {
    this.#count++;
  }

  /** Ends one `retain`. */
  release(): void {
    this.#count--;
    this.#destroyIfUnused();
  }

  /** Destroys the object as soon as nobody holds it. Closing twice is harmless. */
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
