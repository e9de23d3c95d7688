/**
 * Closes native objects that their users dropped without closing, when they are garbage-collected. Objects that
 * Causeway makes only for itself are always closed, and need no finalizer.
 *
 * @module
 */
import { DeferredFinalizer, type FinalizerState, reportUncaught, wantsLeakReports } from "../ffi/mod.ts";
import { afterCaptures } from "./graph/active_captures.ts";
import type { CudaDriver } from "../driver/mod.ts";

/** The state that closes a dropped object, with no reference back to the object. */
export interface DroppedState extends FinalizerState {
  /** The class of the object: `CudaStream`. */
  readonly kind: string;
  /** The driver that made it. */
  readonly driver: CudaDriver;
  /** Does what closing the object would have done. */
  close(): void;
}

/** The method that registers an object to be closed if dropped, for classes where not every object needs that. */
export const registerFinalizer: unique symbol = Symbol("registerFinalizer");

// law device/finalizer: device/dropped
const finalizer = new DeferredFinalizer<DroppedState>((state) => {
  const { kind, driver } = state;
  if (wantsLeakReports()) {
    console.error(`Causeway: a ${kind} was never closed; freed by garbage collection`);
  }
  afterCaptures(driver, () => { // most such calls would invalidate a capture
    try {
      state.close();
    } catch (error) {
      reportUncaught(`closing a ${kind} that was collected`, error);
    }
  });
});

// law device/closeIfDropped: device/dropped
/** Closes an object if it is dropped before it is closed. */
export function closeIfDropped(object: WeakKey, state: DroppedState): void {
  finalizer.register(object, state);
}

// law device/closeOnce: device/dropped, device/graph/graph_resources, device/graph/graph
/** Implements `close` of such an object: closing twice is harmless. */
export function closeOnce(state: DroppedState & { closed: boolean }): void {
  if (state.closed) return;
  state.closed = true;
  state.close();
}
