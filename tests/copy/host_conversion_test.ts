/** Conversions in host memory of more elements than are converted at a time, of any layout and alignment. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { exactAddress, ffiPort } from "../../src/ffi/mod.ts";
import { DType, slice, StridedLayout } from "../../src/layout/mod.ts";
import { bytesOf, conversionOf } from "../../src/copy/conversion.ts";
import { stageOf } from "../../src/copy/conversion_stage.ts";
import { convertHost, explainHostConversion } from "../../src/copy/host_conversion.ts";
import { threadsFor } from "../../src/copy/host_parts.ts";
import { canMoveNatively } from "../../src/native/mod.ts";
import { scratch } from "../../src/wasm/mod.ts";
import { anew, apart, meeting, pattern, type Placed, positionsOf } from "../support/arrays.ts";
import { GuardedMemory } from "../support/guarded_memory.ts";
import { check, fc } from "../support/property.ts";
import { permutations } from "../support/strided_oracle.ts";
import { convertedOneByOne } from "../support/scalar_conversion.ts";

type Pair = readonly [from: string, to: string];

/** Pairs that yield no NaN, whose bits are unspecified. */
const pairs: readonly Pair[] = [
  ["uint8", "float64"],
  ["float64", "uint8"],
  ["float32", "int32"],
  ["int16", "complex64"],
  ["complex128", "bool"],
  ["int64", "int16"],
  ["uint16", "float32"],
];

function conversionBetween(from: string, to: string) {
  const conversion = conversionOf(DType.from(from), DType.from(to));
  if (conversion === null) throw new Error(`${from} to ${to} converts nothing`);
  return conversion;
}

function itemsizesOf([from, to]: Pair): readonly [read: number, written: number] {
  return [DType.from(from).itemsize, DType.from(to).itemsize];
}

/** More elements than a box has, along one axis and along several. */
const shapes = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 80 }), fc.integer({ min: 1, max: 80 })),
  fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 500, max: 2200 })),
  fc.tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 40 })),
  fc.tuple(fc.integer({ min: 2500, max: 3000 })),
);

interface Case {
  readonly pair: Pair;
  readonly source: Placed;
  readonly destination: Placed;
}

/** Elements of the destination may also meet: the last one stays. */
const cases: fc.Arbitrary<Case> = fc.tuple(fc.constantFrom(...pairs), shapes).chain(([pair, shape]) => {
  const [read, written] = itemsizesOf(pair);
  const either = (itemsize: number) =>
    fc.oneof(
      { weight: 3, arbitrary: apart(shape, itemsize) },
      { weight: 1, arbitrary: meeting(shape, itemsize) },
    );
  return fc.record({ pair: fc.constant(pair), source: either(read), destination: either(written) });
});

/** What the destination must hold. */
function expectedOf({ pair, source, destination }: Case, from: Uint8Array, to: Uint8Array): Uint8Array {
  const conversion = conversionBetween(...pair);
  const [read, written] = [bytesOf(conversion.from), bytesOf(conversion.to)];
  const starts = positionsOf(source);
  const elements = new Uint8Array(starts.length * read);
  starts.forEach((at, i) => elements.set(from.subarray(at, at + read), i * read));
  const results = convertedOneByOne(elements, conversion);
  const expected = to.slice();
  positionsOf(destination).forEach((at, i) => expected.set(results.subarray(i * written, (i + 1) * written), at));
  return expected;
}

test("elements are converted box by box, and no other byte is touched, up to a page's end", () => {
  const memory = new GuardedMemory();
  check(
    fc.property(cases, fc.nat(15), (one, shift) => {
      memory.reset();
      // Bytes before the elements shift them off any alignment; bytes behind them must not even be read.
      const [from, to] = [memory.bytes(one.source.size), memory.bytes(one.destination.size)];
      from.bytes.set(pattern(one.source.size, 1 + shift));
      to.bytes.set(pattern(one.destination.size, 5 + shift));
      const before = from.bytes.slice();
      const expected = expectedOf(one, before, to.bytes);
      const old = to.bytes.slice();
      for (const [isKnown, natively] of [[true, true], [false, true], [true, false]] as const) {
        to.bytes.set(old);
        const memoryOf = ({ address }: { readonly address: bigint }, { size }: Placed) =>
          isKnown ? { address: exactAddress(address), size } : undefined;
        convertHost(
          { bytes: from.bytes, ...one.source, memory: memoryOf(from, one.source) },
          { bytes: to.bytes, ...one.destination, memory: memoryOf(to, one.destination) },
          conversionBetween(...one.pair),
          natively,
        );
        assertEquals(to.bytes, expected);
        assertEquals(from.bytes, before);
      }
    }),
    200,
  );
});

/** Memory whose address must not be taken, because it may move. */
function movable(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const room = new Uint8Array(new ArrayBuffer(bytes.length, { maxByteLength: bytes.length + 1 }));
  room.set(bytes);
  return room;
}

test("memory without a stable address is converted all the same", () => {
  check(
    fc.property(fc.oneof(cases, rowCases), fc.boolean(), fc.boolean(), (one, isSourceMovable, isDestinationMovable) => {
      const [before, old] = [pattern(one.source.size, 1), pattern(one.destination.size, 2)];
      const from = isSourceMovable ? movable(before) : before.slice();
      const to = isDestinationMovable ? movable(old) : old.slice();
      convertHost({ bytes: from, ...one.source }, { bytes: to, ...one.destination }, conversionBetween(...one.pair));
      assertEquals(to.slice(), expectedOf(one, before, old));
    }),
    100,
  );
});

test("arrays of megabytes are converted, side by side, transposed, reversed and with gaps", () => {
  const [rows, columns] = [503, 811];
  const layouts = {
    dense: (itemsize: number) => StridedLayout.dense([rows, columns], itemsize),
    turned: (itemsize: number) => StridedLayout.dense([columns, rows], itemsize).transposed(),
    reversed: (itemsize: number) => new StridedLayout([rows, columns], [-2 * columns, 2], itemsize),
    parts: (itemsize: number) => new StridedLayout([rows, columns], [columns + 3, 1], itemsize),
  };
  const conversion = conversionBetween("float32", "int16");
  for (
    const [here, there] of [
      ["dense", "dense"],
      ["turned", "dense"],
      ["reversed", "dense"],
      ["parts", "turned"],
      ["dense", "reversed"],
      ["parts", "parts"],
    ] as const
  ) {
    const place = (layout: StridedLayout, shift: number) => {
      const [min, max] = layout.offsetBounds;
      const offset = shift - min * layout.itemsize;
      const bytes = pattern(offset + (max + 1) * layout.itemsize + 5, shift);
      const starts = Array.from({ length: rows * columns }, (_, i) => {
        const [row, column] = [Math.floor(i / columns), i % columns];
        return offset + layout.offsetOf(row, column) * layout.itemsize;
      });
      return { bytes, offset, layout, starts };
    };
    const [source, destination] = [place(layouts[here](4), 3), place(layouts[there](2), 1)];
    const elements = new Uint8Array(rows * columns * 4);
    source.starts.forEach((at, i) => elements.set(source.bytes.subarray(at, at + 4), 4 * i));
    const results = convertedOneByOne(elements, conversion);
    const expected = destination.bytes.slice();
    destination.starts.forEach((at, i) => expected.set(results.subarray(2 * i, 2 * i + 2), at));
    convertHost(source, destination, conversion);
    assertEquals(destination.bytes.findIndex((byte, at) => byte !== expected[at]), -1, `${here} to ${there}`);
  }
});

/** Rows of contiguous elements with gaps between them, along one to three axes, or, of some destinations, meeting. */
const rowCases: fc.Arbitrary<Case> = fc.tuple(
  fc.constantFrom(...pairs),
  fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 2 }),
  fc.integer({ min: 1, max: 40 }),
  fc.integer({ min: 14, max: 70 }),
).chain(([pair, more, rows, length]) => {
  const outer = [...more, rows];
  const [read, written] = itemsizesOf(pair);
  const gapsOf = (least: number) =>
    fc.array(fc.integer({ min: least, max: 6 }), { minLength: outer.length, maxLength: outer.length });
  const ways = fc.array(fc.constantFrom(1, 1, -1, 0), { minLength: outer.length, maxLength: outer.length });
  const placed = (itemsize: number, between: readonly number[], way: readonly number[]): Placed => {
    const strides = [1];
    for (let axis = outer.length - 1, span = length; axis >= 0; axis--) {
      const stride = span + (between[axis] ?? 0);
      strides.unshift(stride * (way[axis] ?? 1));
      span = stride * (outer[axis] ?? 1);
    }
    const layout = new StridedLayout([...outer, length], strides, itemsize);
    const [min, max] = layout.offsetBounds;
    return { layout, offset: -min * itemsize, size: (max - min + 1) * itemsize };
  };
  return fc.record({
    pair: fc.constant(pair),
    source: fc.tuple(gapsOf(0), ways).map(([between, way]) => placed(read, between, way)),
    destination: fc.oneof({ weight: 3, arbitrary: gapsOf(0) }, { weight: 1, arbitrary: gapsOf(-10) })
      .map((between) => placed(written, between, outer.map(() => 1))),
  });
});

test("rows are converted where they are, whatever lies between them, and no other byte is touched", () => {
  const memory = new GuardedMemory();
  check(
    fc.property(rowCases, fc.nat(15), (one, shift) => {
      memory.reset();
      const [from, to] = [memory.bytes(one.source.size), memory.bytes(one.destination.size)];
      from.bytes.set(pattern(one.source.size, 1 + shift));
      to.bytes.set(pattern(one.destination.size, 5 + shift));
      const expected = expectedOf(one, from.bytes, to.bytes);
      const placed = ({ bytes, address }: typeof from, at: Placed) => ({
        ...{ bytes, ...at, memory: { address: exactAddress(address), size: at.size } },
      });
      convertHost(placed(from, one.source), placed(to, one.destination), conversionBetween(...one.pair));
      assertEquals(to.bytes, expected);
    }),
    200,
  );
});

test("elements that are contiguous in the same order on both sides are one run, in whatever order", () => {
  const orders = shapes.chain((shape) => fc.tuple(fc.constant(shape), permutations(shape.length), fc.boolean()));
  check(
    fc.property(fc.constantFrom(...pairs), orders, fc.nat(9), (pair, [shape, order, isWide], first) => {
      const conversion = conversionBetween(...pair);
      const extents = isWide ? shape.map((extent, axis) => axis === order[0] ? 1 : extent) : shape;
      const placed = (itemsize: number): Placed => {
        const dense = StridedLayout.dense(extents, itemsize, order);
        // The step along an axis of one element may be anything.
        const strides = dense.strides.map((stride, axis) => extents[axis] === 1 ? stride + first * itemsize : stride);
        const layout = new StridedLayout(extents, strides, itemsize);
        return anew({ layout, offset: 0, size: layout.volume * itemsize }, first);
      };
      const one = { pair, source: placed(bytesOf(conversion.from)), destination: placed(bytesOf(conversion.to)) };
      const [from, to] = [pattern(one.source.size, 1), pattern(one.destination.size, 2)];
      const expected = expectedOf(one, from, to);
      convertHost({ bytes: from, ...one.source }, { bytes: to, ...one.destination }, conversion);
      assertEquals(to, expected);
      const { volume } = one.destination.layout;
      const explained = explainHostConversion(one.source.layout, one.destination.layout, conversion);
      assertEquals(explained.includes("gathered") || explained.includes("scattered"), false);
      const isNative = stageOf(conversion).native() !== null && volume >= 64;
      if (isNative) assert(explained.endsWith("by machine code"), explained);
    }),
    100,
  );
});

test("one layout is planned for each pair of types, and each source, that it meets", () => {
  const layout = new StridedLayout([40, 40], [1, 40], 4);
  const bytes = pattern(1600 * 4, 1);
  const other = new StridedLayout([40, 40], [41, 1], 4);
  for (const [source, to] of [[layout, "float32"], [layout, "int32"], [other, "int32"], [layout, "float32"]] as const) {
    const pair = [to === "int32" ? "float32" : "int32", to] as const;
    const placed = (one: StridedLayout): Placed => ({ layout: one, offset: 0, size: 1600 * 4 + 200 });
    const one = { pair: pair, source: placed(source), destination: placed(layout) };
    const from = pattern(1600 * 4 + 200, 3);
    const result = bytes.slice();
    convertHost({ bytes: from, ...one.source }, { bytes: result, ...one.destination }, conversionBetween(...pair));
    assertEquals(result, expectedOf(one, from, bytes));
  }
});

test("layouts that say the same share a plan, wherever they begin, up to a page's end; others do not", () => {
  const memory = new GuardedMemory();
  const alike: readonly Pair[] = [
    ["float32", "int32"],
    ["int32", "float32"],
    ["uint32", "float32"],
    ["uint8", "float32"],
    ["int32", "float64"],
    ["float64", "int32"],
  ];
  const layouts = (itemsize: number) => fc.array(apart([5, 6], itemsize), { minLength: 2, maxLength: 3 });
  const turn = fc.record({ pair: fc.constantFrom(...alike), from: fc.nat(40), to: fc.nat(40) });
  const program = fc.record({
    sizes: fc.record({ bytes: layouts(1), words: layouts(4), pairs: layouts(8) }),
    turns: fc.array(turn, { minLength: 10, maxLength: 30 }),
  });
  check(
    fc.property(program, ({ sizes, turns }) => {
      memory.reset();
      const anyOf = (name: string, pick: number) => {
        const { itemsize } = DType.from(name);
        const all = itemsize === 1 ? sizes.bytes : itemsize === 4 ? sizes.words : sizes.pairs;
        return anew(all[pick % all.length] as Placed, pick); // within its length
      };
      for (const { pair, from, to } of turns) {
        const one = { pair, source: anyOf(pair[0], from), destination: anyOf(pair[1], to) };
        const [read, written] = [memory.bytes(one.source.size), memory.bytes(one.destination.size)];
        read.bytes.set(pattern(one.source.size, from));
        written.bytes.set(pattern(one.destination.size, to));
        const expected = expectedOf(one, read.bytes, written.bytes);
        convertHost(
          { bytes: read.bytes, ...one.source },
          { bytes: written.bytes, ...one.destination },
          conversionBetween(...pair),
        );
        assertEquals(written.bytes, expected);
      }
    }),
    100,
  );
});

test("elements are converted where the stage's memory has grown meanwhile", () => {
  const layout = new StridedLayout([20], [2], 4);
  const one = { pair: ["float32", "int32"], source: { layout, offset: 0, size: 160 } } as const;
  const whole = { ...one, destination: one.source };
  for (let time = 0; time < 3; time++) {
    const [from, to] = [pattern(160, time), pattern(160, 9)];
    const expected = expectedOf(whole, from, to);
    convertHost({ bytes: from, ...one.source }, { bytes: to, ...one.source }, conversionBetween(...one.pair));
    assertEquals(to, expected);
    scratch(scratch(0).length + 1);
  }
});

test("elements outside the memory are refused", () => {
  const conversion = conversionBetween("uint8", "float32");
  const layout = (shape: number[], itemsize: number) => StridedLayout.dense(shape, itemsize);
  for (const [count, natively] of [[16, true], [16, false], [5000, true], [5000, false]] as const) {
    const [from, to] = [new Uint8Array(count), new Uint8Array(4 * count)];
    const convert = (shift: number) =>
      convertHost(
        { bytes: from, offset: 0, layout: layout([count], 1) },
        { bytes: to, offset: 4 * shift, layout: layout([count], 4) },
        conversion,
        natively,
      );
    convert(0);
    for (const shift of [1, -1]) assertThrows(() => convert(shift), RangeError, "expected all elements within");
    const address = exactAddress(ffiPort().addressOf(from.buffer));
    const short = { bytes: from, offset: 0, layout: layout([count], 1), memory: { address, size: count - 1 } };
    const toWhole = { bytes: to, offset: 0, layout: layout([count], 4) };
    if (count > 16) {
      assertThrows(() => convertHost(short, toWhole, conversion, natively), RangeError, "of 4999: expected all");
    }
    structuredClone(from.buffer, { transfer: [from.buffer] });
    assertThrows(() => convert(0), RangeError, "of 0: expected all elements within the memory");
  }
});

test("conversions are explained: how many elements at a time, and whether they are gathered and scattered", () => {
  const conversion = conversionBetween("float64", "float32");
  const explained = (source: StridedLayout, destination: StridedLayout) =>
    explainHostConversion(source, destination, conversion);
  const dense = (...shape: number[]) => [StridedLayout.dense(shape, 8), StridedLayout.dense(shape, 4)] as const;
  const by = "float64 to float32 by the host, by vectors";
  assertEquals(explained(...dense(3, 5)), `15 elements from ${by}`);
  const natively = canMoveNatively() ? "float64 to float32 by the host, by machine code" : by;
  assertEquals(explained(...dense(10, 20)), `200 elements from ${natively}`);
  if (canMoveNatively()) {
    assertEquals(explained(...dense(3000)), `3000 elements from ${natively}`);
    assertEquals(explained(...dense(8000, 1000)), `8000000 elements from ${natively}`);
    const threads = threadsFor({ run: 96 * 10 ** 6, runs: 1, isFree: true });
    const many = `16000000 elements from ${natively}${threads < 2 ? "" : ` on ${threads} threads`}`;
    assertEquals(explained(...dense(16_000, 1000)), many);
  }
  const [from, to] = dense(100, 100);
  assertEquals(explained(from.transposed(), to), `10000 elements from ${by}, 32 x 32 at a time, gathered, scattered`);
  const [wide] = dense(100, 200);
  const gaps = new StridedLayout([100, 100], [200, 2], 4);
  if (canMoveNatively()) {
    const rows = explained(wide.sliced(slice(), slice(0, 100)), to);
    assertEquals(rows, `10000 elements from ${natively}, in rows of 100`);
  }
  if (canMoveNatively()) { // many calls for few elements each would take longer than boxes do
    const few = explained(new StridedLayout([100, 5, 20], [120, 23, 1], 8), StridedLayout.dense([100, 5, 20], 4));
    assertEquals(few.includes("in rows"), false, few);
    const many = explained(
      new StridedLayout([10, 50, 20], [1160, 23, 1], 8),
      new StridedLayout([10, 50, 20], [1210, 24, 1], 4),
    );
    assertEquals(many.includes("in rows of 20"), true, many);
  }
  const [, short] = dense(1000, 10);
  const part = new StridedLayout([1000, 10], [20, 1], 8);
  assertEquals(explained(part, short), `10000 elements from ${by}, 102 x 10 at a time, gathered`);
  assertEquals(explained(from, gaps), `10000 elements from ${by}, 1024 at a time, scattered`);
  assertEquals(explained(...dense(3, 0)), "nothing to copy");
});
