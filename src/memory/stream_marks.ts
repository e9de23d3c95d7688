/**
 * Points in the streams of one process that streams of another wait for: an interprocess event per stream, which is
 * recorded anew for every point. Whoever waits for a later point than was meant waits longer than needed, never shorter.
 *
 * @module
 */
import type { CudaDevice } from "../cuda/device.ts";
import type { CudaEvent } from "../cuda/event.ts";
import { checkDevice } from "../cuda/shared_handle.ts";
import type { CudaStream } from "../cuda/stream.ts";
import type { Mark } from "./channel_message.ts";

/** The marks of both directions of a channel. */
export class StreamMarks {
  readonly #devices: readonly CudaDevice[];
  readonly #ours = new Map<CudaStream, { readonly id: number; readonly event: CudaEvent }>();
  readonly #theirs = new Map<number, CudaEvent>();
  #next = 0;

  /** @param devices where events of the other process are opened */
  constructor(devices: readonly CudaDevice[]) {
    this.#devices = devices;
  }

  /**
   * Marks the present end of a stream.
   *
   * @param fresh where a mark is put that the other side has to be told of
   * @returns the mark's number
   */
  mark(stream: CudaStream, fresh: Mark[]): number {
    const known = this.#ours.get(stream);
    const event = known?.event ?? stream.device.createEvent({ interprocess: true });
    try {
      stream.record(event);
      if (known !== undefined) return known.id;
      const handle = event.exportHandle();
      const id = this.#next++;
      fresh.push({ id, event: handle });
      this.#ours.set(stream, { id, event });
      return id;
    } catch (error) {
      if (known === undefined) event.close();
      throw error;
    }
  }

  /** Takes marks back that the other side was not told of after all. */
  unmark(fresh: readonly Mark[]): void {
    for (const [stream, { id, event }] of this.#ours) {
      if (!fresh.some((mark) => mark.id === id)) continue;
      this.#ours.delete(stream);
      event.close();
    }
  }

  /** Opens the marks that the other side tells of. */
  learn(marks: readonly Mark[]): void {
    for (const { id, event } of marks) {
      if (!this.#theirs.has(id)) this.#theirs.set(id, findDevice(this.#devices, event.device).importEvent(event));
    }
  }

  /** Makes a stream wait for a mark of the other side. */
  wait(stream: CudaStream, id: number): void {
    const event = this.#theirs.get(id);
    if (event === undefined) throw new TypeError(`Cannot read a message: it speaks of mark ${id}, which nobody made`);
    stream.wait(event);
  }

  /** Destroys the events; waits that are enqueued are kept. */
  close(): void {
    for (const { event } of this.#ours.values()) event.close();
    for (const event of this.#theirs.values()) event.close();
    this.#ours.clear();
    this.#theirs.clear();
  }
}

/**
 * The device of this process with a UUID.
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
