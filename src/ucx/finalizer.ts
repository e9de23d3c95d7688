/**
 * Closes objects that programs dropped without closing, when they are garbage-collected.
 *
 * @module
 */
import { DeferredFinalizer, type FinalizerState, reportUncaught, wantsLeakReports } from "../ffi/mod.ts";

/** State that closes a dropped object. It must not reference the object. */
export interface DroppedState extends FinalizerState {
  /** The kind of object: `UcxWorker`. */
  readonly kind: string;
  /** Where the program created it, for the report. */
  readonly madeAt: string;
  /** Does what an immediate close would have done. */
  close(): void;
}

const finalizer = new DeferredFinalizer<DroppedState>(closeDropped);

// law ucx/closeIfDropped: ucx/dropped
/** Closes an object if it is dropped before it is closed. */
export function closeIfDropped(object: WeakKey, state: DroppedState): void {
  finalizer.register(object, state);
}

// law ucx/closeDropped: ucx/dropped
/** Closes a dropped object's state. */
export function closeDropped(state: DroppedState): void {
  const { kind, madeAt } = state;
  if (wantsLeakReports()) {
    console.error(`Causeway: a ${kind} was never closed; freed by garbage collection. It was made\n${madeAt}`);
  }
  try {
    state.close();
  } catch (error) {
    reportUncaught(`closing a ${kind} that was collected`, error);
  }
}

// law ucx/placeOfCall: ucx/dropped
/** The call stack above our caller, if reports are wanted: capturing it takes longer than most calls. */
export function placeOfCall(): string {
  if (!wantsLeakReports()) return "";
  const [_error, _here, _ours, ...callers] = new Error().stack?.split("\n") ?? [];
  return callers.join("\n");
}
