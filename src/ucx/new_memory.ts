/**
 * Memory that is made for what is received.
 *
 * @module
 */
import type { CudaStream } from "../device/mod.ts";
import { DType, type OptionNames, type Shape, StridedLayout } from "../layout/mod.ts";
import { HostMemoryResource, type MemoryResource } from "../memory/mod.ts";
import { makeView, StridedMemoryView } from "../view/mod.ts";

/** Where what is received comes to. */
export interface PlaceOptions {
  /** What allocates the memory, for example `device.memory`. Default: the host's ordinary memory. */
  readonly place?: MemoryResource;
  /** The stream that becomes the home of the memory. Host memory needs none. */
  readonly stream?: CudaStream;
}

/** The names of the options. */
export const placeOptionNames: OptionNames<PlaceOptions> = { place: true, stream: true };

const host = new HostMemoryResource();

/** New memory for an array without gaps. Closing the view gives it back. */
export function newArray(dtype: DType, shape: Shape, { place = host, stream }: PlaceOptions): StridedMemoryView {
  const layout = StridedLayout.dense(shape, dtype.itemsize);
  const bytes = Math.ceil(layout.volume * dtype.itemsize);
  const buffer = place.allocate(bytes, stream === undefined ? {} : { stream });
  return StridedMemoryView[makeView](buffer, 0, layout, dtype, false, buffer);
}

const byte = DType.from("uint8");

/** New memory for so many bytes. */
export function newBytes(count: number, options: PlaceOptions): StridedMemoryView {
  return newArray(byte, [count], options);
}
