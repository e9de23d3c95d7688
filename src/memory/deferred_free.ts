/**
 * Freeing memory that the driver does not free in stream order: pinned, managed and synchronous memory. The free waits
 * for the home stream without making the host wait.
 *
 * @module
 */
import { isCapturing } from "../cuda/captures.ts";
import type { CudaEvent } from "../cuda/event.ts";
import type { CudaStream } from "../cuda/stream.ts";
import { onReclaim } from "./reclaim.ts";

interface Pending {
  readonly passed: CudaEvent;
  /** Ends the hold on the event's device. */
  readonly release: () => void;
  readonly free: () => void;
}

let pending: Pending[] = [];

onReclaim(() => {
  const waiting = pending;
  pending = [];
  for (const one of waiting) {
    // While anything is captured no event may be asked.
    if (isCapturing(one.passed.device.driver) || !one.passed.isDone) pending.push(one);
    else finish(one);
  }
});

function finish({ passed, release, free }: Pending): void {
  try {
    passed.close();
    free();
  } finally {
    release();
  }
}

/**
 * Calls `free` once everything enqueued on the stream is done: at once if it is, else when memory is allocated next.
 *
 * @param stream the home stream, or null for memory that no stream uses
 */
export function freeAfter(stream: CudaStream | null, free: () => void): void {
  if (stream === null || stream.isDone) return free();
  pending.push({ passed: stream.record(), release: stream.device.keep(), free });
}

/** Frees what is still waiting, after waiting for it. For tests, and for a program's end. */
export function drainFrees(): void {
  const waiting = pending;
  pending = [];
  for (const one of waiting) {
    one.passed.synchronize();
    finish(one);
  }
}
