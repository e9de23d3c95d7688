/**
 * The last calls of a driver, for drawing them.
 *
 * @module
 */

/** The kind of a mark on the timeline. */
export type MarkKind = "work" | "record" | "wait" | "host";

/** Work, a record or a wait on a stream, or a wait of the host. */
export interface Mark {
  /** Its number, increasing in call order. */
  readonly seq: number;
  /** The stream's name, or `host`. */
  readonly stream: string;
  /** Its kind. */
  readonly kind: MarkKind;
  /** The driver's function. */
  readonly call: string;
  /** The numbers of the marks that it comes after, besides those before it on its stream. */
  readonly after: readonly number[];
}

/** How many marks are kept. */
const capacity = 512;

/** A ring of the last marks: they refer to each other by number, so that none keeps an older one alive. */
export class Timeline {
  readonly #ring: Mark[] = [];
  #last = 0;

  /** Adds a mark; returns its number. */
  add(stream: string, kind: MarkKind, call: string, after: readonly number[]): number {
    const seq = ++this.#last;
    this.#ring[seq % capacity] = { seq, stream, kind, call, after };
    return seq;
  }

  /** The marks that are still kept, in order. */
  marks(): readonly Mark[] {
    return this.#ring.filter((mark) => mark !== undefined).sort((a, b) => a.seq - b.seq);
  }
}
