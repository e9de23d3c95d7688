/**
 * ArrayBuffers that operations in flight use: each once, however many use it.
 *
 * Neither engine reports a transfer, and neither can prevent it. So a worker that wakes up asks every buffer before UCX
 * may write to it: the only work of a wakeup that grows with what is pending, about 10 ns a buffer, most of which are
 * cache misses. An array of views is the fastest way: engines compile whether a view has a first element inline, and
 * call functions for `byteLength` and `detached`.
 *
 * @module
 */

/** A buffer, and how many use it. */
export interface BufferInUse {
  readonly buffer: ArrayBuffer;
  /** The buffers that it is one of. */
  readonly among: BuffersInUse;
  users: number;
  /** Its index; -1 once it is not asked any more. */
  at: number;
}

/** In place of a view of a buffer that was transferred already: there can be none. */
const gone = new Uint8Array(0);

/** The buffers of one worker. */
export class BuffersInUse {
  readonly #known = new Map<ArrayBuffer, BufferInUse>();
  readonly #all: BufferInUse[] = [];
  /** A view of each, at the same index. */
  readonly #views: Uint8Array[] = [];

  /** How many there are. */
  get count(): number {
    return this.#views.length;
  }

  // law ucx/BuffersInUse.use: ucx/buffers_in_use
  /** Adds a user of a buffer that was not empty, until {@linkcode free}. */
  use(buffer: ArrayBuffer): BufferInUse {
    const known = this.#known.get(buffer);
    if (known !== undefined) {
      known.users++;
      return known;
    }
    const added = { buffer, among: this, users: 1, at: this.#views.length };
    this.#known.set(buffer, added);
    this.#all.push(added);
    this.#views.push(buffer.byteLength === 0 ? gone : new Uint8Array(buffer));
    return added;
  }

  // law ucx/BuffersInUse.free: ucx/buffers_in_use
  /** Removes a user. */
  free(used: BufferInUse): void {
    if (--used.users === 0 && used.at >= 0) this.#remove(used);
  }

  /** Whether JavaScript has transferred some of them. Those are forgotten: each is reported once. */
  takeTransferred(): boolean {
    const views = this.#views;
    const before = views.length;
    for (let at = lastGone(views, before); at >= 0; at = lastGone(views, at)) {
      const used = this.#all[at];
      if (used !== undefined) this.#remove(used); // another one takes its place, which was asked already
    }
    return views.length < before;
  }

  // law ucx/BuffersInUse.remove: ucx/buffers_in_use
  #remove(used: BufferInUse): void {
    const { at } = used;
    this.#known.delete(used.buffer);
    used.at = -1;
    const last = this.#all.pop();
    const view = this.#views.pop();
    if (last === used || last === undefined || view === undefined) return;
    this.#all[at] = last;
    this.#views[at] = view;
    last.at = at;
  }
}

// law ucx/lastGone: ucx/buffers_in_use, ucx/transferred
/**
 * The last index before `end` of a view whose buffer was transferred; -1 if there is none. It is nothing but the loop:
 * V8 compiles a loop while it runs, and throws the code away, each time, where something follows that has never run.
 */
function lastGone(views: readonly Uint8Array[], end: number): number {
  for (let i = end - 1; i >= 0; i--) {
    const view = views[i];
    if (view !== undefined && !(0 in view)) return i;
  }
  return -1;
}
