/**
 * What the rooms above may know of a stream and its users need not: under a symbol that no public subpath exports. Who
 * uses it imports no class.
 *
 * @module
 */
import type { CudaStream } from "./stream.ts";

/** The member of a stream that has its {@linkcode StreamInternals}. */
export const internals: unique symbol = Symbol("internals");

/** Notified when a stream's work ends, without an event that marks it. */
export interface StreamWatcher {
  /** Everything that was enqueued is done: the stream was waited for, or queried. */
  onPassed(): void;
  /** The stream is about to be closed: its end can be marked now, and not later. */
  onClosing(): void;
}

/** Shared by all objects that stand for one stream: the one that its user has, and its successor. */
export interface StreamInternals {
  /** What its user calls it. */
  name: string | null;
  /** Notified when the stream's work ends; null if nothing has to be. */
  watcher: StreamWatcher | null;
  /** Everything that was enqueued is done, as the driver has just said. */
  passed(): void;
  /**
   * Called once, before anything else, when its user closes the stream. It must not lead to the user's object, which
   * could not be collected then, but may lead to the successor.
   */
  beforeClose: (() => void) | null;
  /** Whether its user has closed it, or has dropped it and the garbage collector found it. */
  readonly isClosedByUser: boolean;
  /**
   * Whether the handle is valid until the stream is closed here: that of a foreign stream may be destroyed at any time.
   */
  readonly isHandleStable: boolean;
  /**
   * An object of the same stream that is not its user's: for code that must not keep that one from being collected. It
   * can be used until the last that retains the stream releases it.
   */
  readonly successor: CudaStream;
}
