/**
 * Memory that is allocated for received data.
 *
 * @module
 */
import { checkOpenStream, CudaDevice, type CudaStream } from "../device/mod.ts";
import { DType, type DTypeName, none, type OptionNames, type Shape, show, StridedLayout } from "../layout/mod.ts";
import {
  allocateFrom,
  DeviceMemoryResource,
  DriverMemoryResource,
  HostMemoryResource,
  type MemoryBuffer,
  MemoryResource,
} from "../memory/mod.ts";
import { makeView, StridedMemoryView } from "../view/mod.ts";

/** Where received data go. */
export interface PlaceOptions {
  /**
   * The resource that allocates the memory, for example `device.memory`; a device, for that; or `"host"`. Default: the
   * host's ordinary memory.
   */
  readonly place?: MemoryResource | CudaDevice | "host";
  /** The stream that becomes the memory's home stream. Host memory needs none. */
  readonly stream?: CudaStream;
}

/** The names of the options. */
export const placeOptionNames: OptionNames<PlaceOptions> = { place: true, stream: true };

const host = new HostMemoryResource();

/** Where new memory comes from. */
export class NewMemory {
  readonly #resource: MemoryResource;
  readonly #stream: CudaStream | undefined;

  // law ucx/NewMemory.constructor: ucx/arrays
  /**
   * Checks the options, on a device by an allocation of nothing: a message that was taken, and then finds no memory, is
   * lost. A program's own resource may count what it allocates.
   *
   * @throws {TypeError} if there is no such place, or it allocates nothing on the stream
   */
  constructor({ place = host, stream }: PlaceOptions) {
    this.#resource = resourceOf(place);
    this.#stream = stream;
    if (stream !== undefined) checkOpenStream(stream, "Cannot receive on a stream");
    const isDevices = this.#resource instanceof DeviceMemoryResource || this.#resource instanceof DriverMemoryResource;
    if (isDevices) this.#allocate(0).close();
  }

  #allocate(bytes: number): MemoryBuffer {
    return allocateFrom(this.#resource, bytes, this.#stream === undefined ? none : { stream: this.#stream });
  }

  /** New memory for a dense array. Closing the view frees it. */
  array<D extends DTypeName>(dtype: DType<D>, shape: Shape): StridedMemoryView<D> {
    const layout = StridedLayout.dense(shape, dtype.itemsize);
    const buffer = this.#allocate(Math.ceil(layout.volume * dtype.itemsize));
    const view = StridedMemoryView[makeView](buffer, 0, layout, dtype, false, buffer);
    return view as StridedMemoryView<D>; // its dtype is the one that was passed
  }

  /** New memory for `count` bytes. */
  bytes(count: number): StridedMemoryView<"uint8"> {
    return this.array(byte, [count]);
  }

  // law ucx/NewMemory.receive: ucx/arrays, ucx/message_parts, ucx/gpu_behaviours
  /**
   * Receives into new memory, by way of the host where UCX cannot use it.
   *
   * @param isKnown whether it can
   */
  async receive<T>(
    array: StridedMemoryView,
    isKnown: boolean,
    receive: (into: StridedMemoryView) => Promise<T>,
  ): Promise<T> {
    const { device, stream: home } = array.buffer;
    if (device === null || isKnown) return await receive(array);
    using staged = new NewMemory({}).array(array.dtype, array.shape);
    const received = await receive(staged);
    const stream = this.#stream ?? home ?? device.defaultStream;
    array.copyFrom(staged, { stream });
    await stream.completed(); // any stream may use it now, also where the memory has no home that says otherwise
    return received;
  }
}

const byte = DType.from("uint8");

function resourceOf(place: PlaceOptions["place"]): MemoryResource {
  if (place instanceof MemoryResource) return place;
  if (place instanceof CudaDevice) return place.memory;
  if (place === "host") return host;
  throw new TypeError(
    `Cannot receive in ${show(place)}: expected a MemoryResource, such as device.memory, a CudaDevice, or "host"`,
  );
}
