/**
 * What one end of a memory channel has received from the other: pools, and memory that it has to return.
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

/** A value that has arrived and was not taken. */
export interface Arrived {
  readonly message: ValueMessage;
  readonly files: readonly FileDescriptor[];
}

/** Returns memory to the other end: it is unused after what is enqueued on the stream. */
export type ReturnShares = (shares: readonly number[], stream: CudaStream | null) => void;

/** What this end has received from the other. */
export class ChannelImports {
  readonly #devices: readonly CudaDevice[];
  readonly #marks: StreamMarks;
  readonly #returnShares: ReturnShares;
  readonly #pools = new Map<number, DeviceMemoryResource>();
  #buffers = 0;

  /** @param devices of this process */
  constructor(devices: readonly CudaDevice[], marks: StreamMarks, returnShares: ReturnShares) {
    this.#devices = devices;
    this.#marks = marks;
    this.#returnShares = returnShares;
  }

  /** How many buffers are not closed. */
  get size(): number {
    return this.#buffers;
  }

  /**
   * Opens a value, all of it or nothing.
   *
   * @param stream the home stream of its buffers; by default that of each device
   */
  open({ message, files }: Arrived, stream: CudaStream | undefined): unknown {
    const opened: SharedResource[] = [];
    const taken = new Set<number>();
    try {
      this.#marks.learn(message.marks);
      for (const { id, device, file } of message.pools) this.#learnPool(id, device, files[file]);
      let { value } = message;
      for (const part of message.parts) {
        const resource = this.#import(part, files, stream);
        if (part.kind === "buffer") taken.add(part.share);
        opened.push(resource);
        value = restore(value, part.path, resource);
      }
      return value;
    } catch (error) {
      // A pool stays the channel's; everything else is returned.
      for (const one of opened) if (!(one instanceof DeviceMemoryResource)) one.close();
      this.refuse({ message, files }, taken);
      throw error;
    }
  }

  /** Returns what came with a value, except the memory that was taken. */
  refuse({ message, files }: Arrived, taken: ReadonlySet<number> = new Set()): void {
    for (const file of files) file.close();
    const shares = message.parts.flatMap((part) => part.kind === "buffer" ? [part.share] : []);
    this.#returnShares(shares.filter((share) => !taken.has(share)), null);
  }

  /** Closes the pools, once their buffers are. */
  close(): void {
    for (const pool of this.#pools.values()) pool.close();
  }

  #learnPool(id: number, uuid: string, file: FileDescriptor | undefined): void {
    if (file === undefined) throw new TypeError(`Cannot read a message: pool ${id} came without its file`);
    this.#pools.set(id, DeviceMemoryResource.importPool(findDevice(this.#devices, uuid), file));
    file.close();
  }

  #pool(id: number): DeviceMemoryResource {
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
        if (file === undefined) throw new TypeError("Cannot read a message: a file did not come with it");
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
    if (part.mark !== null) this.#marks.wait(home, part.mark); // first: what fails after it has nothing to undo
    const buffer = part.pool === null
      ? importMemory(device, part.descriptor, options)
      : this.#pool(part.pool).importBuffer(part.descriptor, options);
    this.#buffers++;
    // What has no home stream there was ready when it was sent, for any stream.
    if (part.mark !== null) {
      observerOf(device.driver)?.received(buffer.ptr, buffer.size, home.handleFor("use"), "MemoryChannel.receive()");
    }
    return buffer;
  }
}
