/**
 * What is sent and received: objects in one kind of memory.
 *
 * @module
 */
import { Cuda } from "../../cuda/mod.ts";
import type { CudaStream } from "../../device/mod.ts";
import { HostMemoryResource, type MemoryBuffer, type MemoryResource, PinnedMemoryResource } from "../../memory/mod.ts";
import type { PlaceOptions } from "../../ucx/mod.ts";
import { StridedMemoryView } from "../../view/mod.ts";
import type { SendRecvOptions } from "./options.ts";

/** Makes the objects that travel, and knows their contents when sent. The caller closes what it gets. */
export interface Payload<T> {
  /** Something to receive into. */
  empty(): T;
  /** Something to send. */
  filled(): T;
  /** Overwrites its contents, so that they differ from what is sent. */
  overwrite(what: T): void;
  /** Whether it holds what was sent. */
  holds(what: T): Promise<boolean> | boolean;
  /** Frees its memory. */
  close(what: T): void;
}

/** Objects of one size, shape and kind of memory. */
export class Objects implements Payload<StridedMemoryView>, Disposable {
  /** Where they are allocated. */
  readonly place: PlaceOptions;
  readonly #cuda: Cuda | null;
  readonly #stream: CudaStream | null;
  readonly #allocate: () => MemoryBuffer;
  readonly #shape: readonly number[];
  /** The bytes 0, 1, 2 and so on. */
  readonly #content: MemoryBuffer;

  /**
   * @param ordinal of the GPU, for memory that involves one
   * @param open opens the CUDA that such memory is of
   * @throws {RangeError} if there is no such GPU
   */
  constructor(
    { bytes, ndim, memory }: Pick<SendRecvOptions, "bytes" | "ndim" | "memory">,
    ordinal: number,
    open: (memory: string) => Cuda = openCuda,
  ) {
    const host = new HostMemoryResource();
    this.#shape = ndim === 1 ? [bytes] : [bytes / 4, 2, 2];
    this.#cuda = memory === "host" ? null : open(memory);
    this.#stream = null;
    let place: MemoryResource = host;
    if (this.#cuda !== null) {
      const device = this.#cuda.devices[ordinal];
      if (device === undefined) {
        const { length } = this.#cuda.devices;
        this.#cuda.close();
        throw new RangeError(`Cannot use GPU ${ordinal}: this machine has ${length}, numbered from 0.`);
      }
      if (memory === "pinned") place = new PinnedMemoryResource(device);
      else {
        place = device.memory;
        this.#stream = device.createStream();
      }
    }
    this.place = { place, ...this.#order };
    this.#allocate = () => place.allocate(bytes, this.#order);
    this.#content = host.allocate(bytes);
    const content = this.#content.bytes();
    for (let i = 0; i < content.length; i++) content[i] = i;
  }

  /** Device memory is written on its home stream. */
  get #order(): { readonly stream?: CudaStream } {
    return this.#stream === null ? {} : { stream: this.#stream };
  }

  empty(): StridedMemoryView {
    return StridedMemoryView.fromBuffer(this.#allocate(), { shape: this.#shape, dtype: "uint8" });
  }

  filled(): StridedMemoryView {
    const view = this.empty();
    view.buffer.copyFrom(this.#content, this.#order);
    return view;
  }

  overwrite(view: StridedMemoryView): void {
    view.buffer.fill(0xff, this.#order);
  }

  async holds(view: StridedMemoryView): Promise<boolean> {
    const content = this.#content.bytes();
    const elements = await view.toTypedArray();
    const bytes = new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength);
    return bytes.length === content.length && bytes.every((byte, i) => byte === content[i]);
  }

  close(view: StridedMemoryView): void {
    view.close(); // for views received into new memory
    view.buffer.close();
  }

  /** Frees what the objects were made with. Close the objects first. */
  [Symbol.dispose](): void {
    this.#content.close();
    this.#stream?.close();
    this.#cuda?.close();
  }
}

/** Several objects at once. Received objects come in new memory, so there are none to receive into. */
export class ManyObjects implements Payload<readonly StridedMemoryView[]> {
  readonly #objects: Objects;
  readonly #count: number;

  constructor(objects: Objects, count: number) {
    this.#objects = objects;
    this.#count = count;
  }

  /** Where received objects are allocated. */
  get place(): PlaceOptions {
    return this.#objects.place;
  }

  empty(): readonly StridedMemoryView[] {
    return [];
  }

  filled(): readonly StridedMemoryView[] {
    return Array.from({ length: this.#count }, () => this.#objects.filled());
  }

  overwrite(views: readonly StridedMemoryView[]): void {
    for (const view of views) this.#objects.overwrite(view);
  }

  async holds(views: readonly StridedMemoryView[]): Promise<boolean> {
    const each = await Promise.all(views.map((view) => this.#objects.holds(view)));
    return each.length === this.#count && each.every((isRight) => isRight);
  }

  close(views: readonly StridedMemoryView[]): void {
    for (const view of views) this.#objects.close(view);
  }
}

/** Bytes in JavaScript's memory, which is what its streams carry: reads take the memory and give it back. */
export class Chunks implements Payload<Uint8Array<ArrayBuffer>> {
  /** 0, 1, 2 and so on. */
  readonly #content: Uint8Array<ArrayBuffer>;

  constructor(bytes: number) {
    this.#content = new Uint8Array(bytes);
    for (let i = 0; i < bytes; i++) this.#content[i] = i;
  }

  empty(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#content.length);
  }

  filled(): Uint8Array<ArrayBuffer> {
    return this.#content.slice();
  }

  overwrite(bytes: Uint8Array<ArrayBuffer>): void {
    bytes.fill(0xff);
  }

  holds(bytes: Uint8Array<ArrayBuffer>): boolean {
    return bytes.length === this.#content.length && bytes.every((byte, i) => byte === this.#content[i]);
  }

  close(): void {} // left to the garbage collector
}

function openCuda(memory: string): Cuda {
  const { available, reason } = Cuda.probe();
  if (!available) throw new RangeError(`Cannot use ${memory} memory: ${reason}`);
  return Cuda.open();
}
