/**
 * Resources that one end of a memory channel has sent to the other: memory that is pinned until it is returned, and
 * pools that the other end knows.
 *
 * @module
 */
import { checkSameCuda, type CudaDevice, CudaEvent } from "../../device/mod.ts";
import { runAll } from "../../ffi/mod.ts";
import { FileDescriptor } from "../../unix/mod.ts";
import {
  extract,
  type Mark,
  type Part,
  type ReleaseMessage,
  type Shareable,
  type SharedResource,
  type ValueMessage,
} from "./channel_message.ts";
import { DeviceMemoryResource } from "../device_memory_resource.ts";
import { MemoryBuffer } from "../memory_buffer.ts";
import type { MemoryPool } from "../memory_pool.ts";
import type { StreamMarks } from "./interprocess_events.ts";

/** A message that is being composed. */
export class Outgoing {
  readonly parts: Part[] = [];
  readonly pools: ValueMessage["pools"][number][] = [];
  readonly marks: Mark[] = [];
  /** Files sent along, in the order of their numbers. */
  readonly files: FileDescriptor[] = [];
  /** Closes the files that were created for this message. */
  readonly own: DisposableStack = new DisposableStack();
  /** Undoes the preparations if the message is not sent. */
  readonly undo: DisposableStack = new DisposableStack();
}

/** A part without its path. */
type Placeless<T> = T extends unknown ? Omit<T, "path"> : never;

/** Resources that the other end holds from this one. */
export class ChannelExports {
  readonly #devices: readonly CudaDevice[];
  readonly #marks: StreamMarks;
  /** Memory not returned yet, by number: each function unpins a buffer, after the other end's work. */
  readonly #shares = new Map<number, (mark: number | null) => void>();
  /** Pools that the other end knows, and their numbers. */
  readonly #sentPools = new Map<MemoryPool, number>();
  #nextShare = 0;
  #nextPool = 0;

  /** @param devices the channel's devices @param marks the channel's marks */
  constructor(devices: readonly CudaDevice[], marks: StreamMarks) {
    this.#devices = devices;
    this.#marks = marks;
  }

  /** The number of buffers not returned yet. */
  get size(): number {
    return this.#shares.size;
  }

  /** Describes a value for the other end, which holds its resources from now on. */
  describe(value: Shareable, outgoing: Outgoing): ValueMessage {
    const { value: plain, found } = extract(value);
    for (const { path, resource } of found) outgoing.parts.push({ path, ...this.#describe(resource, outgoing) });
    const { parts, pools, marks } = outgoing;
    return { kind: "value", value: plain, parts, pools, marks };
  }

  // law memory/ChannelExports.undo: memory/sharing/memory_channel
  /** Takes back the resources of a message that was described but not sent. */
  undo({ undo, marks }: Outgoing): void {
    undo.dispose();
    this.#marks.unmark(marks);
  }

  // law memory/ChannelExports.takeBack: memory/sharing/memory_channel
  /**
   * Takes back memory that the other end has returned: its streams' work comes before any later use of the memory. All
   * of it is taken back, even if some cannot be freed: the first error is then thrown at the end.
   */
  takeBack({ shares, mark, marks }: ReleaseMessage): void {
    this.#marks.learn(marks);
    runAll(shares.map((share) => () => this.#shares.get(share)?.(mark)));
  }

  // law memory/ChannelExports.takeAllBack: memory/sharing/memory_channel
  /** Takes everything back when the other end is gone, as {@linkcode ChannelExports.takeBack} does. */
  takeAllBack(): void {
    runAll([...this.#shares.values()].map((end) => () => end(null)));
  }

  #describe(resource: SharedResource, outgoing: Outgoing): Placeless<Part> {
    if (resource instanceof FileDescriptor) return { kind: "file", file: outgoing.files.push(resource) - 1 };
    const [ours] = this.#devices;
    const device = resource instanceof MemoryBuffer ? resource.driven : resource.device;
    if (ours !== undefined && device !== null) checkSameCuda({ device }, ours, "Cannot send a resource");
    if (resource instanceof CudaEvent) return { kind: "event", event: resource.exportHandle() };
    if (resource instanceof DeviceMemoryResource) return { kind: "pool", pool: this.#tell(resource.pool, outgoing) };
    const descriptor = resource.exportDescriptor();
    const pool = resource.pool === null ? null : this.#tell(resource.pool, outgoing);
    const share = this.#share(resource, outgoing);
    const mark = resource.stream === null ? null : this.#marks.mark(resource.stream, outgoing.marks);
    return { kind: "buffer", share, descriptor, pool, mark };
  }

  /** The number of a pool, which is sent along if the other end does not know it yet. */
  #tell(pool: MemoryPool, outgoing: Outgoing): number {
    const known = this.#sentPools.get(pool);
    if (known !== undefined) return known;
    const file = pool.export();
    outgoing.own.use(file);
    const id = this.#nextPool++;
    outgoing.pools.push({ id, device: pool.device.uuid, file: outgoing.files.push(file) - 1 });
    this.#sentPools.set(pool, id);
    outgoing.undo.defer(() => this.#sentPools.delete(pool));
    return id;
  }

  // law memory/ChannelExports.share: memory/sharing/memory_channel
  /** Pins a buffer until the other end returns it. */
  #share(buffer: MemoryBuffer, outgoing: Outgoing): number {
    const share = this.#nextShare++;
    const pin = buffer.pinned();
    this.#shares.set(share, (mark) => {
      this.#shares.delete(share);
      try {
        if (mark !== null && buffer.stream !== null) this.#marks.wait(buffer.stream, mark);
      } finally {
        pin[Symbol.dispose]();
      }
    });
    outgoing.undo.defer(() => this.#shares.get(share)?.(null));
    return share;
  }
}
