/** Copies between any two layouts of which a device has one, by every path, against copying byte by byte. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, type MemoryBuffer, StridedMemoryView } from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { apart, copiedByHand, meeting, pattern, type Placed } from "./arrays.ts";
import { room, type Where } from "./room.ts";

/** Element types by their size in bytes; what the elements are does not matter. */
const types: { readonly [bytes: number]: string } = {
  1: "uint8",
  2: "uint16",
  3: "uint8x3",
  4: "uint32",
  8: "uint64",
  12: "uint32x3",
  16: "complex128",
};

const shapes: fc.Arbitrary<number[]> = fc.oneof(
  fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 4 }),
  fc.tuple(fc.integer({ min: 8, max: 70 }), fc.integer({ min: 8, max: 140 })),
  fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 8, max: 40 }), fc.integer({ min: 8, max: 40 })),
  fc.tuple(fc.constantFrom(32, 64, 128), fc.constantFrom(32, 64, 96)),
);

const where = fc.constantFrom<Where>("device", "device", "pinned", "host");

interface Case {
  readonly itemsize: number;
  readonly from: Where;
  readonly to: Where;
  readonly seed: number;
  readonly source: Placed;
  readonly destination: Placed;
}

const copies: fc.Arbitrary<Case> = fc.tuple(shapes, fc.constantFrom(1, 2, 3, 4, 8, 12, 16)).chain(([shape, itemsize]) =>
  fc.record({
    itemsize: fc.constant(itemsize),
    from: where,
    to: where,
    seed: fc.nat(),
    source: fc.oneof(
      { weight: 4, arbitrary: apart(shape, itemsize) },
      { weight: 1, arbitrary: meeting(shape, itemsize) },
    ).map(aligned),
    destination: apart(shape, itemsize).map(aligned),
  })
);

/** Every other case begins where every word can: at a multiple of 16 bytes. */
function aligned(placed: Placed): Placed {
  const { layout, offset, size } = placed;
  return size % 2 === 0 ? placed : { layout, offset: Math.ceil(offset / 16) * 16, size: size + 16 };
}

function view(buffer: MemoryBuffer, { layout, offset }: Placed, itemsize: number): StridedMemoryView {
  const { shape, strides } = layout;
  const dtype = types[itemsize] ?? "";
  const start = layout.volume === 0 ? 0 : offset + layout.sliceOffsetInBytes;
  return StridedMemoryView.fromBuffer(buffer, { shape, strides, dtype, offset: start });
}

test("a copy between any two layouts, anywhere, moves each element to its place and touches nothing else", () => {
  check(
    fc.property(copies, ({ itemsize, from, to, seed, source, destination }) => {
      using cuda = Cuda.simulate({ seed });
      const { device, allocate, read } = room(cuda);
      const [before, after] = [pattern(source.size, seed), pattern(destination.size, seed + 1)];
      const [one, other] = [allocate(from, before), allocate(to, after)];
      const [here, there] = [view(one, source, itemsize), view(other, destination, itemsize)];
      using stream = device.createStream();
      there.copyFrom(here, { stream });
      stream.synchronize();
      assertEquals(read(other), copiedByHand(source, before, destination, after), there.explainCopyFrom(here));
      assertEquals(read(one), before);
      for (const buffer of [one, other]) buffer.close();
    }),
    160,
  );
});

test("a copy within one memory gives the elements from before it, however the two overlap", () => {
  check(
    fc.property(copies.filter(({ source, destination }) => source.size > 0 && destination.size > 0), (one) => {
      const { itemsize, seed, source, destination } = one;
      using cuda = Cuda.simulate({ seed });
      const { device, allocate, read } = room(cuda);
      const before = pattern(Math.max(source.size, destination.size), seed);
      using buffer = allocate("device", before);
      view(buffer, destination, itemsize).copyFrom(view(buffer, source, itemsize));
      device.synchronize();
      assertEquals(read(buffer), copiedByHand(source, before, destination, before));
    }),
    70,
  );
});
