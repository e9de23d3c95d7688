/**
 * Memory that is allocated for received data.
 *
 * @module
 */
import type { CudaStream } from "../device/mod.ts";
import { DType, type OptionNames, type Shape, StridedLayout } from "../layout/mod.ts";
import { HostMemoryResource, type MemoryResource } from "../memory/mod.ts";
import { makeView, StridedMemoryView } from "../view/mod.ts";

/** Where received data go. */
export interface PlaceOptions {
  /** The resource that allocates the memory, for example `device.memory`. Default: the host's ordinary memory. */
  readonly place?: MemoryResource;
  /** The stream that becomes the memory's home stream. Host memory needs none. */
  readonly stream?: CudaStream;
}

/** The names of the options. */
export const placeOptionNames: OptionNames<PlaceOptions> = { place: true, stream: true };

const host = new HostMemoryResource();

/** New memory for a dense array. Closing the view frees it. */
export function newArray(dtype: DType, shape: Shape, { place = host, stream }: PlaceOptions): StridedMemoryView {
  const layout = StridedLayout.dense(shape, dtype.itemsize);
  const bytes = Math.ceil(layout.volume * dtype.itemsize);
  const buffer = place.allocate(bytes, stream === undefined ? {} : { stream });
  return StridedMemoryView[makeView](buffer, 0, layout, dtype, false, buffer);
}

const byte = DType.from("uint8");

/** New memory for `count` bytes. */
export function newBytes(count: number, options: PlaceOptions): StridedMemoryView {
  return newArray(byte, [count], options);
}
