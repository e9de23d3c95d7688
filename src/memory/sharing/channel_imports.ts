/**
 * Resources that one end of a memory channel has received from the other: pools, and memory that it must return.
 *
 * @module
 */
import type { CudaDevice, CudaStream } from "../../device/mod.ts";
import { observerOf } from "../../driver/mod.ts";
import type { FileDescriptor } from "../../unix/mod.ts";
import { type Part, restore, type SharedResource, type ValueMessage } from "./channel_message.ts";
import { DeviceMemoryResource } from "../device_memory_resource.ts";
import type { MemoryBuffer } from "../memory_buffer.ts";
import { type ImportBufferOptions, importMemory } from "../import_buffer.ts";
import { findDevice, type StreamMarks } from "./interprocess_events.ts";

/** A value that has arrived and was not received by the user yet. */
export interface Arrived {
  readonly message: ValueMessage;
  readonly files: readonly FileDescriptor[];
}

/** Returns memory to the other end: it is unused after the work now enqueued on the stream. */
export type ReturnShares = (shares: readonly number[], stream: CudaStream | null) => void;

/** Resources that this end has received from the other. */
export class ChannelImports {
  readonly #devices: readonly CudaDevice[];
  readonly #marks: StreamMarks;
  readonly #returnShares: ReturnShares;
  readonly #pools = new Map<number, DeviceMemoryResource>();
  /** Pools that could not be imported when they came, which they do once. */
  readonly #unopened = new Map<number, { readonly uuid: string; readonly file: FileDescriptor }>();
  #buffers = 0;

  /** @param devices of this process */
  constructor(devices: readonly CudaDevice[], marks: StreamMarks, returnShares: ReturnShares) {
    this.#devices = devices;
    this.#marks = marks;
    this.#returnShares = returnShares;
  }

  /** The number of open buffers. */
  get size(): number {
    return this.#buffers;
  }

  /**
   * Opens a value, all or nothing.
   *
   * @param stream the home stream of its buffers; default: each device's default stream
   */
  open({ message, files }: Arrived, stream: CudaStream | undefined): unknown {
    const opened: SharedResource[] = [];
    const taken = new Set<number>();
    try {
      for (const { id, device: uuid, file } of message.pools) this.#learnPool(id, uuid, files[file]);
      let { value } = message;
      for (const part of message.parts) {
        const resource = this.#import(part, files, stream);
        if (part.kind === "buffer") taken.add(part.share);
        opened.push(resource);
        value = restore(value, part.path, resource);
      }
      return value;
    } catch (error) {
      // Pools stay with the channel; everything else is returned.
      for (const one of opened) if (!(one instanceof DeviceMemoryResource)) one.close();
      this.refuse({ message, files }, taken);
      throw error;
    }
  }

  /** Returns the resources of a value, except memory that was taken. */
  refuse({ message, files }: Arrived, taken: ReadonlySet<number> = new Set()): void {
    const kept = new Set(this.#unopened.values().map(({ file }) => file));
    for (const file of files) if (!kept.has(file)) file.close();
    const shares = message.parts.flatMap((part) => part.kind === "buffer" ? [part.share] : []);
    this.#returnShares(shares.filter((share) => !taken.has(share)), null);
  }

  /** Closes the pools, once their buffers are closed. */
  close(): void {
    for (const pool of this.#pools.values()) pool.close();
    for (const { file } of this.#unopened.values()) file.close();
  }

  // law memory/ChannelImports.learnPool: memory/sharing/memory_channel
  /** Imports a pool. One that cannot be imported is tried again when a message names it. */
  #learnPool(id: number, uuid: string, file: FileDescriptor | undefined): void {
    if (file === undefined) throw new TypeError(`Cannot read a message: pool ${id} came without its file`);
    this.#unopened.set(id, { uuid, file });
    try {
      this.#openPool(id);
    } catch (error) { // whatever names it says why
      if (error instanceof RangeError) file.close(); // its device is not seen here, nor will it be
    }
  }

  #openPool(id: number): void {
    const unopened = this.#unopened.get(id);
    if (unopened === undefined) return;
    const { uuid, file } = unopened;
    this.#pools.set(id, DeviceMemoryResource.importPool(findDevice(this.#devices, uuid), file));
    this.#unopened.delete(id);
    file.close();
  }

  #pool(id: number): DeviceMemoryResource {
    this.#openPool(id);
    const pool = this.#pools.get(id);
    if (pool === undefined) throw new TypeError(`Cannot read a message: it names pool ${id}, which was never sent`);
    return pool;
  }

  #import(part: Part, files: readonly FileDescriptor[], stream: CudaStream | undefined): SharedResource {
    switch (part.kind) {
      case "event":
        return findDevice(this.#devices, part.event.device).importEvent(part.event);
      case "pool":
        return this.#pool(part.pool);
      case "file": {
        const file = files[part.file];
        if (file === undefined) throw new TypeError("Cannot read a message: its file is missing");
        return file;
      }
      case "buffer":
        return this.#importBuffer(part, stream);
    }
  }

  // law memory/ChannelImports.importBuffer: memory/sharing/memory_channel, checker/received
  #importBuffer(part: Extract<Part, { readonly kind: "buffer" }>, stream: CudaStream | undefined): MemoryBuffer {
    const device = findDevice(this.#devices, part.descriptor.device);
    const home = stream ?? device.defaultStream;
    const onRelease = (at: CudaStream) => {
      this.#buffers--;
      this.#returnShares([part.share], at);
    };
    const options: ImportBufferOptions = { stream: home, onRelease };
    if (part.mark !== null) this.#marks.wait(home, part.mark); // first: a later failure has nothing to undo
    const buffer = part.pool === null
      ? importMemory(device, part.descriptor, options)
      : this.#pool(part.pool).importBuffer(part.descriptor, options);
    this.#buffers++;
    // Memory without a home stream there was ready for any stream when it was sent.
    if (part.mark !== null) {
      observerOf(device.driver)?.received(buffer.ptr, buffer.size, home.handleFor("use"), "MemoryChannel.receive()");
    }
    return buffer;
  }
}
