/**
 * Gives back what programs dropped without closing it, when the garbage collector finds it.
 *
 * @module
 */
import { DeferredFinalizer, type FinalizerState, reportUncaught, wantsLeakReports } from "../ffi/mod.ts";

/** What gives back what was dropped. It must not lead back to the object. */
export interface DroppedState extends FinalizerState {
  /** What it was: `UcxWorker`. */
  readonly kind: string;
  /** Where the program has made it, for the report. */
  readonly madeAt: string;
  /** Does what closing it at once would have done. */
  close(): void;
}

const finalizer = new DeferredFinalizer<DroppedState>(closeDropped);

// law ucx/closeIfDropped: ucx/dropped
/** Closes an object if it is dropped before it is closed. */
export function closeIfDropped(object: WeakKey, state: DroppedState): void {
  finalizer.register(object, state);
}

// law ucx/closeDropped: ucx/dropped
/** Closes what was dropped. */
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
/** The calls that lead to who has called our caller, if reports are wanted: a stack takes longer than most calls. */
export function placeOfCall(): string {
  if (!wantsLeakReports()) return "";
  const [_error, _here, _ours, ...callers] = new Error().stack?.split("\n") ?? [];
  return callers.join("\n");
}
