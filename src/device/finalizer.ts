/**
 * The net below `close`: what the driver has made for somebody who dropped it is given back when the garbage collector finds it.
 * Whatever is made for the inside of the house alone is closed for certain, and needs none.
 *
 * @module
 */
import { DeferredFinalizer, type FinalizerState, reportUncaught, wantsLeakReports } from "../ffi/mod.ts";
import { afterCaptures } from "./graph/active_captures.ts";
import type { CudaDriver } from "../driver/mod.ts";

/** What is left of an object that was dropped. It must not lead back to the object. */
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

const finalizer = new DeferredFinalizer<DroppedState>((left) => {
  const { kind, driver } = left;
  if (wantsLeakReports()) {
    console.error(`Causeway: a ${kind} was never closed; freed by garbage collection`);
  }
  afterCaptures(driver, () => { // most of it would spoil a capture
    try {
      left.close();
    } catch (error) {
      reportUncaught(`closing a ${kind} that was collected`, error);
    }
  });
});

/** Closes an object if it is dropped before it is closed. */
export function closeIfDropped(object: WeakKey, left: DroppedState): void {
  finalizer.register(object, left);
}
