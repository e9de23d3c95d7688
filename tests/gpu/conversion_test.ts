/** Converting copies, on a real device: every value of every type is converted as on the host. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, DeviceMemoryResource, HostMemoryResource, type MemoryBuffer, StridedMemoryView } from "../../mod.ts";
import { DType, type Scalar } from "../../src/layout/mod.ts";
import type { NumberType } from "../../src/copy/conversion.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { fc } from "../support/property.ts";
import { elements, pairsOfTypes, shown } from "../support/numbers.ts";

const [rows, columns] = [56, 40];
const count = rows * columns;

function filled(buffer: MemoryBuffer, { name }: NumberType, values: readonly Scalar[]): StridedMemoryView {
  const dtype = DType.from(name);
  const { buffer: memory, byteOffset } = buffer.bytes();
  values.forEach((value, i) => dtype.write(new DataView(memory), byteOffset + i * dtype.itemsize, value));
  return StridedMemoryView.fromBuffer(buffer, { shape: [rows, columns], dtype });
}

function words(view: StridedMemoryView): string[] {
  const { buffer, byteOffset } = view.buffer.bytes();
  const memory = new DataView(buffer);
  return Array.from({ length: count }, (_, i) => shown(view.dtype.read(memory, byteOffset + i * view.dtype.itemsize)));
}

test(...needs(missingGpus(), "a device converts every value of every type to what the host makes of it"), () => {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using stream = device.createStream();
  const [memory, host] = [new DeviceMemoryResource(device), new HostMemoryResource()];
  const wrong: string[] = [];
  for (const { from, to } of pairsOfTypes) {
    const [values = []] = fc.sample(fc.array(elements(from), { minLength: count, maxLength: count, size: "max" }), 1);
    const [size, wanted] = [DType.from(from.name).itemsize * count, DType.from(to.name).itemsize * count];
    using given = host.allocate(size);
    using there = memory.allocate(size, { stream });
    using result = memory.allocate(wanted, { stream });
    using back = host.allocate(wanted);
    using expected = host.allocate(wanted);
    const source = filled(given, from, values);
    const onDevice = StridedMemoryView.fromBuffer(there, { shape: [rows, columns], dtype: DType.from(from.name) });
    onDevice.copyFrom(source, { stream });
    // In destination order, and through tiles.
    for (const axes of [[0, 1], [1, 0]]) {
      const shape = axes.map((axis) => source.shape[axis] ?? 0);
      const into = (buffer: MemoryBuffer) =>
        StridedMemoryView.fromBuffer(buffer, { shape, dtype: DType.from(to.name) });
      const [seen, byHost] = [into(back), into(expected)];
      into(result).copyFrom(onDevice.permuted(axes), { stream, convert: true });
      seen.copyFrom(into(result), { stream });
      byHost.copyFrom(source.permuted(axes), { convert: true });
      stream.synchronize();
      const [ours, theirs] = [words(seen), words(byHost)];
      const bad = ours.flatMap((word, i) => word === theirs[i] ? [] : [`${word}, not ${theirs[i]}`]);
      if (bad.length > 0) wrong.push(`${from.name} to ${to.name}, axes ${axes}: ${bad.length} wrong, as ${bad[0]}`);
    }
  }
  assertEquals(wrong, []);
});
