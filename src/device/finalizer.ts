/**
 * Closes native objects that their users dropped without closing them, when the garbage collector finds them. Objects
 * that Causeway makes for itself alone are closed for certain, and need no finalizer.
 *
 * @module
 */
import { DeferredFinalizer, type FinalizerState, reportUncaught, wantsLeakReports } from "../ffi/mod.ts";
import { afterCaptures } from "./graph/active_captures.ts";
import type { CudaDriver } from "../driver/mod.ts";

/** What closes an object that was dropped. It must not lead back to the object. */
export interface DroppedState extends FinalizerState {
  /** What it was: `CudaStream`. */
  readonly kind: string;
  /** The driver that has made it. */
  readonly driver: CudaDriver;
  /** Does what closing it would have done. */
  close(): void;
}

/** The method by which an object has itself closed if it is dropped, where not every object of its class needs that. */
export const registerFinalizer: unique symbol = Symbol("registerFinalizer");

// law device/finalizer: device/dropped
const finalizer = new DeferredFinalizer<DroppedState>((state) => {
  const { kind, driver } = state;
  if (wantsLeakReports()) {
    console.error(`Causeway: a ${kind} was never closed; freed by garbage collection`);
  }
  afterCaptures(driver, () => { // most of it would invalidate a capture
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
/** What `close` of such an object does: closing twice is harmless. */
export function closeOnce(state: DroppedState & { closed: boolean }): void {
  if (state.closed) return;
  state.closed = true;
  state.close();
}
