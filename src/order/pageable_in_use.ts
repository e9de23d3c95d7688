/**
 * Ordinary memory of the host that work on a stream uses. To ask the driver about each copy would take longer than a small
 * copy does, so what one stream uses is kept together: it is unpinned when somebody has waited for the stream, and otherwise the
 * stream's end is marked for all of it, once it is much or the stream is closed.
 *
 * @module
 */
import {
  afterCaptures,
  captureOf,
  type CudaDevice,
  type CudaStream,
  internals,
  type StreamWatcher,
} from "../device/mod.ts";
import { reportUncaught } from "../ffi/mod.ts";
import { freeAfter, freeAfterAll, pollPending } from "./deferred_free.ts";
import type { OrderedMemory } from "./ordered_memory.ts";

/** So many bytes are much, or so many buffers: each counts as its share at least. */
const much = 16 * 2 ** 20;
const share = much / 64;

/** What nobody has marked the end of yet. The only thing that surely keeps it: a stream may be dropped. */
const open = new Set<InFlight>();

/** Whether memory was closed that is in one of them: whoever looks next finds out whether it can go. */
let isWanted = false;

// law order/markClosed: order/pageable_in_use
/** Marks the ends of the streams that use closed memory. */
export function markClosed(): void {
  if (!isWanted) return;
  isWanted = false;
  for (const one of open) one.onClosing();
}

/** Devices at whose end somebody looks. */
const watched = new WeakSet<CudaDevice>();

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
    if (device.isClosed || watched.has(device)) return;
    watched.add(device);
    device.onClose(() => {
      for (const one of open) if (one.#stream.device === device) one.onClosing();
      pollPending();
    });
  }

  // law order/InFlight.add: order/pageable_in_use
  add(buffer: OrderedMemory): void {
    this.#buffers.push(buffer);
    this.#weight += Math.max(buffer.size, share);
    // Another's stream may be gone when its end is wanted, and so may one of ours that is closed, or a closed device's.
    const stream = this.#stream;
    if (this.#weight >= much || !stream[internals].isHandleStable || stream.device.isClosed) this.onClosing();
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
      if (captureOf(this.#stream) === null) freeAfter(this.#stream, free, this.#weight);
      else afterCaptures(device.driver, () => freeAfterAll([device], free)); // a mark of the stream would be the graph's
    });
  }

  // law order/InFlight.end: order/pageable_in_use
  /** Nothing comes to it any more. */
  #end(): void {
    open.delete(this);
    this.#stream[internals].watcher = null;
  }

  // law order/InFlight.free: order/pageable_in_use
  #free(): void {
    for (const buffer of this.#buffers) quietly(() => buffer.unpin());
  }
}

/** For who copies, waits or closes, and whom others' memory does not concern. */
function quietly(work: () => void): void {
  try {
    work();
  } catch (error) {
    reportUncaught("freeing memory that a copy has used", error);
  }
}

// law order/pinWhileInFlight: order/pageable_in_use
/** Keeps the memory of a buffer until everything is done that the stream holds now. */
export function pinWhileInFlight(buffer: OrderedMemory, stream: CudaStream): void {
  buffer.pin();
  const { watcher } = stream[internals];
  const kept = watcher instanceof InFlight ? watcher : new InFlight(stream);
  kept.add(buffer);
}

// law order/freeSoon: order/pageable_in_use
/** Says that memory which perhaps is kept was closed. */
export function freeSoon(): void {
  isWanted = open.size > 0;
}
