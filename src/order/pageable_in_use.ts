/**
 * Ordinary host memory that work on a stream uses. Querying the driver for each copy would take longer than a small
 * copy, so all memory that one stream uses is pinned together. It is unpinned when the host has waited for the stream;
 * otherwise one event marks the stream's end for all of it, once enough is in flight or the stream is closed.
 *
 * @module
 */
import {
  afterCaptures,
  captureOf,
  type CudaDevice,
  type CudaStream,
  internals,
  PerDevice,
  type StreamWatcher,
} from "../device/mod.ts";
import { reportUncaught } from "../ffi/mod.ts";
import { freeAfter, freeAfterAll, pollPending } from "./deferred_free.ts";
import type { OrderedMemory } from "./ordered_memory.ts";

/** Bytes in flight that warrant an event. So do 64 buffers: each counts as at least one share. */
const eventBytes = 16 * 2 ** 20;
const share = eventBytes / 64;

/** Entries whose end is not marked yet. This set keeps them alive: their streams may be dropped. */
const open = new Set<InFlight>();

/** Whether memory of an open entry was closed: the next poll checks whether it can be freed. */
let isWanted = false;

// law order/markClosed: order/pageable_in_use
/**
 * If memory in flight was closed, marks the ends of all streams that have some, and frees each when they have passed.
 */
export function markClosed(): void {
  if (!isWanted) return;
  isWanted = false;
  for (const one of open) one.onClosing();
}

// law order/markedAtClose: order/pageable_in_use, device/dropped
/** Devices whose close marks the ends of their streams. */
const markedAtClose = new PerDevice(() => true, (_, device) => {
  for (const one of open) one.onDeviceClosing(device);
  pollPending();
});

class InFlight implements StreamWatcher {
  readonly #stream: CudaStream;
  readonly #buffers: OrderedMemory[] = [];
  #weight = 0;

  // law order/InFlight.constructor: order/pageable_in_use, device/dropped
  constructor(stream: CudaStream) {
    const { device } = stream;
    this.#stream = stream[internals].successor;
    stream[internals].watcher = this;
    open.add(this);
    if (!device.isClosed) markedAtClose.of(device);
  }

  // law order/InFlight.onDeviceClosing: order/pageable_in_use, device/dropped
  /** A device is about to close. */
  onDeviceClosing(device: CudaDevice): void {
    if (this.#stream.device === device) this.onClosing();
  }

  // law order/InFlight.add: order/pageable_in_use
  add(buffer: OrderedMemory): void {
    this.#buffers.push(buffer);
    this.#weight += Math.max(buffer.size, share);
    // A foreign stream may be destroyed before its end is marked; so may a closed one, or a stream of a closed device.
    const stream = this.#stream;
    if (this.#weight >= eventBytes || !stream[internals].isHandleStable || stream.device.isClosed) this.onClosing();
  }

  onPassed(): void {
    this.#end();
    this.#free();
  }

  // law order/InFlight.onClosing: order/pageable_in_use
  onClosing(): void {
    this.#end();
    const { device } = this.#stream;
    const free = () => this.#free();
    quietly(() => {
      // An event that is recorded on a captured stream belongs to its graph.
      if (captureOf(this.#stream) === null) freeAfter(this.#stream, free, this.#weight);
      else afterCaptures(device.driver, () => freeAfterAll([device], free));
    });
  }

  // law order/InFlight.end: order/pageable_in_use
  /** Accepts no more buffers. */
  #end(): void {
    open.delete(this);
    this.#stream[internals].watcher = null;
  }

  // law order/InFlight.free: order/pageable_in_use
  #free(): void {
    for (const buffer of this.#buffers) quietly(() => buffer.unpin());
  }
}

/** For callers that copy, wait or close: errors of other memory do not concern them. */
function quietly(work: () => void): void {
  try {
    work();
  } catch (error) {
    reportUncaught("freeing memory that a copy has used", error);
  }
}

// law order/pinWhileInFlight: order/pageable_in_use
/** Pins a buffer until everything now enqueued on the stream is done. */
export function pinWhileInFlight(buffer: OrderedMemory, stream: CudaStream): void {
  buffer.pin();
  const { watcher } = stream[internals];
  const inFlight = watcher instanceof InFlight ? watcher : new InFlight(stream);
  inFlight.add(buffer);
}

// law order/noteClosed: order/pageable_in_use
/** Notes that memory which may be in flight was closed. */
export function noteClosed(): void {
  isWanted = open.size > 0;
}
