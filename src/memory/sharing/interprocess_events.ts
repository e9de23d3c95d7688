/**
 * Points in the streams of one process that streams of another wait for: interprocess events. Each event is recorded
 * again for a later point of its stream, or, once everything before its point is done, for any stream. So there are as
 * many events as streams busy at a time. A stream that waits for a later point than intended waits longer than needed,
 * never shorter.
 *
 * @module
 */
import { checkDevice, type CudaDevice, type CudaEvent, type CudaStream } from "../../device/mod.ts";
import { observerOf } from "../../driver/mod.ts";
import type { Mark } from "./channel_message.ts";
import { comeAfter, isOver } from "../../order/mod.ts";

/** One of our events that the other side knows. */
interface Ours {
  readonly id: number;
  readonly event: CudaEvent;
}

/** The marks of both directions of a channel. */
export class StreamMarks {
  readonly #devices: readonly CudaDevice[];
  /** Events by device and by the stream whose point each marks; the one last recorded or queried comes last. */
  readonly #ours = new Map<CudaDevice, Map<CudaStream, Ours>>();
  /** Null if our own device is gone, so that nothing could wait. */
  readonly #theirs = new Map<number, CudaEvent | null>();
  /** Marks of the other side that could not be opened when they came: they come once. */
  readonly #unopened = new Map<number, Mark>();
  #next = 0;

  /** @param devices where events of the other process are opened */
  constructor(devices: readonly CudaDevice[]) {
    this.#devices = devices;
  }

  // law memory/StreamMarks.mark: memory/sharing/interprocess_events, memory/sharing/memory_channel
  /**
   * Marks the current end of a stream.
   *
   * @param fresh receives the mark if it must be sent to the other side
   * @returns the mark's number
   */
  mark(stream: CudaStream, fresh: Mark[]): number {
    const { device } = stream;
    const ours = this.#ours.getOrInsertComputed(device, () => new Map());
    const former = ours.has(stream) ? stream : passed(ours);
    const known = former === null ? undefined : ours.get(former);
    const event = known?.event ?? ofChannel(device.makeEvent({ interprocess: true }));
    try {
      stream.record(event);
      const id = known?.id ?? this.#next++;
      if (known === undefined) fresh.push({ id, event: event.exportHandle() });
      if (former !== null) ours.delete(former);
      ours.set(stream, { id, event });
      return id;
    } catch (error) {
      if (known === undefined) event.close();
      throw error;
    }
  }

  /** Drops marks that were not sent after all. */
  unmark(fresh: readonly Mark[]): void {
    for (const ours of this.#ours.values()) {
      for (const [stream, { id, event }] of ours) {
        if (!fresh.some((mark) => mark.id === id)) continue;
        ours.delete(stream);
        event.close();
      }
    }
  }

  // law memory/StreamMarks.learn: memory/sharing/interprocess_events, memory/sharing/memory_channel
  /** Opens marks of the other side. One that cannot be opened is tried again when a message names it. */
  learn(marks: readonly Mark[]): void {
    for (const mark of marks) {
      if (this.#theirs.has(mark.id)) continue;
      try {
        this.#open(mark);
      } catch {
        this.#unopened.set(mark.id, mark);
      }
    }
  }

  #open({ id, event }: Mark): void {
    const device = findDevice(this.#devices, event.device);
    this.#theirs.set(id, device.isGone ? null : ofChannel(device.importEvent(event)));
    this.#unopened.delete(id);
  }

  // law memory/StreamMarks.wait: memory/sharing/interprocess_events, memory/sharing/memory_channel
  /** Makes a stream wait for a mark of the other side, or the host if the driver refuses. */
  wait(stream: CudaStream, id: number): void {
    const unopened = this.#unopened.get(id);
    if (unopened !== undefined) this.#open(unopened);
    const event = this.#theirs.get(id);
    if (event === undefined) throw new TypeError(`Cannot read a message: it names mark ${id}, which was never sent`);
    if (event !== null) comeAfter(stream, event);
  }

  // law memory/StreamMarks.close: memory/sharing/interprocess_events, memory/sharing/memory_channel
  /** Destroys the events; waits already enqueued remain. */
  close(): void {
    for (const ours of this.#ours.values()) for (const { event } of ours.values()) event.close();
    for (const event of this.#theirs.values()) event?.close();
    this.#ours.clear();
    this.#theirs.clear();
  }
}

// law memory/ofChannel: checker/lifetime
/**
 * Tells an observer that an event is closed together with its channel, which may end only after the program's close.
 */
function ofChannel(event: CudaEvent): CudaEvent {
  observerOf(event.device.driver)?.closedByUser(event.handle);
  return event;
}

/** How many marks are queried before a new event is created. */
const patience = 8;

// law memory/passed: memory/sharing/interprocess_events, memory/sharing/memory_channel
/**
 * A stream whose mark has passed, so that its event can be recorded again. Pending marks move to the end of the query
 * order.
 */
function passed(ours: Map<CudaStream, Ours>): CudaStream | null {
  for (let asked = 0; asked < Math.min(patience, ours.size); asked++) {
    const oldest = ours.entries().next().value;
    if (oldest === undefined) return null;
    const [stream, mark] = oldest;
    if (isOver(mark.event)) return stream;
    ours.delete(stream);
    ours.set(stream, mark);
  }
  return null;
}

/**
 * The device of this process with the given UUID.
 *
 * @throws {RangeError} if this process does not see it
 */
export function findDevice(devices: readonly CudaDevice[], uuid: string): CudaDevice {
  const found = devices.find((device) => device.uuid === uuid);
  const [first] = devices;
  if (found !== undefined) return found;
  if (first === undefined) throw new RangeError("Cannot import anything: this Cuda has no devices");
  checkDevice(uuid, first);
  return first;
}
