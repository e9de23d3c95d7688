/**
 * How long the exception of an error is kept: until the error has been collected. Errors are collected between turns of
 * the event loop only, and a program that catches a million of them in one turn should not keep a million exceptions:
 * within a turn only the exceptions of the last errors are kept.
 *
 * @module
 */
import type { Exception } from "./error.ts";
import { handleOf } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import type { PyObject } from "./object.ts";

/** A reference that is owned until it is 0n. */
interface Reference {
  readonly python: Interpreter;
  object: bigint;
}

/** How many exceptions of one turn are kept. */
const mostOfTurn = 256;

/** The last exceptions of this turn, as a ring once there are so many. */
const ofTurn: HeldException[] = [];
/** Where the oldest of a full ring is. */
let oldest = 0;

// law python/HeldException: python/raised
/** An exception that an error keeps. */
export class HeldException implements Exception {
  readonly #reference: Reference;
  #value: PyObject | null = null;

  /** Adopts the reference. Needs the interpreter's lock. */
  constructor(python: Interpreter, object: bigint) {
    this.#reference = { python, object };
    if (ofTurn.length === 0) queueMicrotask(endTurn);
    if (ofTurn.length < mostOfTurn) {
      ofTurn.push(this);
      return;
    }
    ofTurn[oldest]?.release();
    ofTurn[oldest] = this;
    oldest = (oldest + 1) % mostOfTurn;
  }

  get value(): PyObject | null {
    const object = this.#take();
    if (object !== 0n) this.#value = this.#reference.python.wrap(object);
    return this.#value;
  }

  get address(): bigint {
    const handle = this.#value === null ? undefined : handleOf(this.#value);
    return handle === undefined ? this.#reference.object : handle.held;
  }

  release(): void {
    const object = this.#take();
    if (object !== 0n) this.#reference.python.releaseLater(object);
  }

  /** Releases the exception, if it is still owned, when its error has been collected. */
  releaseWithError(): void {
    if (this.#reference.object !== 0n) finalizer.register(this, this.#reference);
  }

  /** The exception, which is then no longer owned; 0n if it was taken before. */
  #take(): bigint {
    const { object } = this.#reference;
    this.#reference.object = 0n;
    return object;
  }
}

/** Leaves the exceptions of a turn to the collector, which takes longer than all else that is done for one. */
function endTurn(): void {
  for (const exception of ofTurn) exception.releaseWithError();
  ofTurn.length = oldest = 0;
}

/** A finalizer must not wait for Python's lock: the reference is released when the lock is next held. */
const finalizer = new FinalizationRegistry<Reference>(({ python, object }) => {
  if (object !== 0n) python.releaseLater(object);
});
