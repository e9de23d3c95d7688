/**
 * What the rooms above may know about a stream and its users need not, under a symbol that no public subpath exports.
 * Using it requires no import of a class.
 *
 * @module
 */
import type { CudaStream } from "./stream.ts";

/**
 * The key of a property of streams and events: whether their work is done, asked without the driver's observer. What a
 * poll of the library finds done is chance: the program has not waited for it.
 */
export const isDoneByPoll: unique symbol = Symbol("isDoneByPoll");

/** The key of a stream's {@linkcode StreamInternals}. */
export const internals: unique symbol = Symbol("internals");

/** Is notified when a stream's work is done, without an event that marks it. */
export interface StreamWatcher {
  /** Everything enqueued is done: the stream was waited for, or queried. */
  onPassed(): void;
  /** The stream is about to be closed: its end can be marked now, but not later. */
  onClosing(): void;
}

/** State shared by all objects that stand for one stream: the user's object and its successor. */
export interface StreamInternals {
  /** The name that its user gave it. */
  name: string | null;
  /** Is notified when the stream's work is done; null if there is nothing to notify. */
  watcher: StreamWatcher | null;
  /** Called when the driver has just reported that everything enqueued is done. */
  passed(): void;
  /**
   * Called once, before anything else, when its user closes the stream. It must not reference the user's object, which
   * could then not be collected, but may reference the successor.
   */
  beforeClose: (() => void) | null;
  /** Whether its user has closed it, or dropped it and it was collected. */
  readonly isClosedByUser: boolean;
  /** Whether it is one of ours, in the device's primary context; a foreign stream may be in any other. */
  readonly isOwned: boolean;
  /** Whether the handle is valid until the stream is closed here: a foreign stream may be destroyed at any time. */
  readonly isHandleStable: boolean;
  /**
   * An object of the same stream other than the user's, for code that must not keep the user's object from being
   * collected. It is usable until the last reference to the stream is released.
   */
  readonly successor: CudaStream;
}
