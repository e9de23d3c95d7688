/**
 * Copies between two layouts against an oracle that moves one byte of one element at a time.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { slice, StridedLayout } from "../../src/layout/mod.ts";
import { copyHost, denseCopy, explainHostCopy } from "../../src/copy/host_copy.ts";
import { HostMemoryResource, MemoryBuffer } from "../../src/memory/mod.ts";
import { canMoveNatively } from "../../src/native/strided_mover.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { shapes } from "../support/strided_oracle.ts";
import { check, fc } from "../support/property.ts";
import { anew, apart, copiedByHand, meeting, pattern, type Placed } from "../support/arrays.ts";
import { GuardedMemory } from "../support/guarded_memory.ts";

const itemsizes = fc.integer({ min: 1, max: 16 });

/** Two arrays of one shape and itemsize: source and destination. */
const pairs: fc.Arbitrary<{ source: Placed; destination: Placed }> = fc.tuple(
  // Also long innermost axes, for runs that are copied at once.
  fc.oneof({ weight: 4, arbitrary: shapes() }, { weight: 1, arbitrary: fc.tuple(fc.nat(4), fc.nat(90)) }),
  itemsizes,
).chain(([shape, itemsize]) =>
  fc.record({
    source: fc.oneof({ weight: 3, arbitrary: apart(shape, itemsize) }, {
      weight: 1,
      arbitrary: meeting(shape, itemsize),
    }),
    destination: apart(shape, itemsize),
  })
);

test("a copy moves every byte of every element to the same index, and touches no other byte", () => {
  check(
    fc.property(pairs, ({ source, destination }) => {
      const from = pattern(source.size, 1);
      const to = pattern(destination.size, 2);
      const expected = copiedByHand(source, from, destination, to);
      const before = from.slice();
      for (let time = 0; time < 2; time++) { // the second time by the same plan
        to.set(pattern(destination.size, 2));
        copyHost({ bytes: from, ...source }, { bytes: to, ...destination });
        assertEquals(to, expected);
        assertEquals(from, before);
      }
    }),
    3000,
  );
});

test("a view is copied from wherever it lies to wherever the other one does, each time, also if the two overlap", () => {
  const types = { 1: "uint8", 2: "uint16", 4: "float32", 8: "float64", 16: "complex128" } as const;
  const some = fc.tuple(shapes(), fc.constantFrom(1, 2, 4, 8, 16)).chain(([shape, itemsize]) =>
    fc.record({
      dtype: fc.constant(types[itemsize as keyof typeof types]),
      source: apart(shape, itemsize),
      destination: apart(shape, itemsize),
      starts: fc.tuple(fc.nat(200), fc.nat(200)),
    })
  );
  check(
    fc.property(some, ({ dtype, source, destination, starts: [first, second] }) => {
      const memory = pattern(Math.max(first + source.size, second + destination.size), 1);
      const view = (placed: Placed, start: number) => {
        const buffer = MemoryBuffer.fromArrayBuffer(memory.buffer, start, placed.size);
        const nothing = StridedMemoryView.fromBuffer(buffer, { shape: [0], dtype, offset: placed.offset });
        return nothing.view({ layout: placed.layout });
      };
      const [from, to] = [view(source, first), view(destination, second)];
      const moved = (placed: Placed, start: number) => ({ ...placed, offset: placed.offset + start });
      for (let time = 0; time < 3; time++) {
        memory.set(pattern(memory.length, time + 2));
        const expected = copiedByHand(moved(source, first), memory, moved(destination, second), memory);
        to.copyFrom(from);
        assertEquals(memory, expected);
      }
    }),
    1000,
  );
});

test("an array that was copied once is not copied after its memory was closed or transferred", () => {
  const array = () => new Float32Array(10).fill(1);
  const owned = (elements: Float32Array<ArrayBuffer>) => {
    const buffer = new HostMemoryResource().allocate(elements.byteLength);
    return StridedMemoryView.fromBuffer(buffer, { shape: [elements.length], dtype: "float32" });
  };
  const [from, to] = [array(), array()];
  const ends = [
    { view: owned(from), end: (view: StridedMemoryView) => view.buffer.close() },
    { view: StridedMemoryView.fromTypedArray(from), end: () => structuredClone(from, { transfer: [from.buffer] }) },
  ];
  for (const { view, end } of ends) {
    const other = StridedMemoryView.fromTypedArray(to);
    for (let time = 0; time < 3; time++) {
      other.copyFrom(view);
      view.copyFrom(other);
    }
    end(view);
    assertThrows(() => other.copyFrom(view), TypeError, "use");
    assertThrows(() => view.copyFrom(other), TypeError, "use");
  }
});

test("a plan is for the two layouts that it was made for, whichever were copied before", () => {
  const shape = [3, 4];
  const layouts = fc.array(apart(shape, 2), { minLength: 2, maxLength: 4 });
  check(
    fc.property(
      layouts,
      layouts,
      fc.array(fc.tuple(fc.nat(3), fc.nat(3)), { minLength: 6, maxLength: 12 }),
      (sources, destinations, picks) => {
        for (const [i, j] of picks) {
          const [source, destination] = [sources[i % sources.length], destinations[j % destinations.length]];
          assert(source !== undefined && destination !== undefined);
          const [from, to] = [pattern(source.size, i), pattern(destination.size, j + 10)];
          const expected = copiedByHand(source, from, destination, to);
          copyHost({ bytes: from, ...source }, { bytes: to, ...destination });
          assertEquals(to, expected);
        }
      },
    ),
    300,
  );
});

test("layouts that say the same share a plan, wherever they begin, up to a page's end; others do not", () => {
  const memory = new GuardedMemory();
  const alike = fc.tuple(fc.constantFrom(2, 4), fc.constantFrom([3, 4], [4, 3], [12], [3, 4, 1])).chain(
    ([itemsize, shape]) => fc.oneof(apart(shape, itemsize), apart(shape, itemsize), meeting(shape, itemsize)),
  );
  const turn = fc.record({ source: fc.nat(9), destination: fc.nat(9), from: fc.nat(5), to: fc.nat(5) });
  const program = fc.record({
    layouts: fc.array(alike, { minLength: 10, maxLength: 10 }),
    turns: fc.array(turn, { minLength: 10, maxLength: 40 }),
  });
  check(
    fc.property(program, ({ layouts, turns }) => {
      memory.reset();
      for (const { source: i, destination: j, from, to } of turns) {
        const [one, other] = [layouts[i], layouts[j]];
        assert(one !== undefined && other !== undefined);
        const { itemsize } = one.layout;
        const isPair = itemsize === other.layout.itemsize && `${one.layout.shape}` === `${other.layout.shape}`;
        const [source, destination] = [anew(one, from), anew(isPair ? other : one, to)];
        const [read, written] = [memory.bytes(source.size), memory.bytes(destination.size)];
        read.bytes.set(pattern(source.size, i));
        written.bytes.set(pattern(destination.size, j + 10));
        const expected = copiedByHand(source, read.bytes, destination, written.bytes);
        copyHost({ bytes: read.bytes, ...source }, { bytes: written.bytes, ...destination });
        assertEquals(written.bytes, expected);
      }
    }),
    200,
  );
});

test("a dense copy holds the same elements in C order", () => {
  check(
    fc.property(fc.tuple(shapes(), itemsizes).chain(([shape, itemsize]) => meeting(shape, itemsize)), (source) => {
      const from = pattern(source.size, 1);
      const { layout } = source;
      const length = layout.volume * layout.itemsize;
      const dense = { layout: StridedLayout.dense(layout.shape, layout.itemsize), offset: 0, size: length };
      const copy = denseCopy({ bytes: from, ...source });
      assertEquals(copy.offset, 0);
      assertEquals(copy.layout.isContiguousC, true);
      assertEquals(copy.bytes, copiedByHand(source, from, dense, new Uint8Array(length)));
    }),
    1000,
  );
});

test("elements inside a byte are copied by the bytes that they fill, and the next ones are left alone", () => {
  // Previously devices did so, and the host refused them all.
  check(
    fc.property(fc.constantFrom(1, 2, 4), fc.array(fc.nat(4), { minLength: 1, maxLength: 3 }), (bits, outer) => {
      const shape = [...outer, 16];
      const part = (layout: StridedLayout) => layout.sliced("...", slice(8, null));
      const whole = StridedLayout.dense(shape, bits / 8);
      const bytes = Math.ceil(whole.volume * bits / 8);
      const [from, to] = [pattern(bytes, 1), pattern(bytes, 2)];
      const [source, destination] = [part(whole), part(whole)];
      // First as a copy of a few elements, then by the plan kept from the first time.
      for (let time = 0; time < 2; time++) {
        copyHost({ bytes: from, offset: 0, layout: source }, { bytes: to, offset: 0, layout: destination });
      }
      const before = pattern(bytes, 2);
      const row = 2 * bits; // bytes: the second half of each is copied
      to.forEach((byte, at) => assertEquals(byte, at % row < bits ? before[at] : from[at]));
    }),
    200,
  );
  const odd = (...bytes: number[]) => ({
    bytes: new Uint8Array(bytes),
    offset: 0,
    layout: StridedLayout.dense([3], 0.5),
  });
  const [source, target] = [odd(0x21, 0x43), odd(0x98, 0xba)];
  for (let time = 0; time < 2; time++) {
    target.bytes.set([0x98, 0xba]);
    copyHost(source, target);
    assertEquals(target.bytes, new Uint8Array([0x21, 0xb3]));
  }
});

test("without elements there is nothing to copy, whatever the strides and the itemsize", () => {
  for (const itemsize of [8, 0.5]) {
    const layout = new StridedLayout([3, 0, 2], [100, 7, -50], itemsize);
    const to = new Uint8Array([1, 2, 3]);
    copyHost({ bytes: new Uint8Array(0), offset: 0, layout }, { bytes: to, offset: 0, layout });
    assertEquals(to, new Uint8Array([1, 2, 3]));
  }
});

test("copies by the host are explained: in one piece, in runs, or element by element", () => {
  const dense = (shape: number[]) => StridedLayout.dense(shape, 4);
  const rows = dense([10, 20]).sliced(slice(), slice(0, 15));
  const by = canMoveNatively() ? "machine code" : "loops";
  const explains = (source: StridedLayout, destination: StridedLayout, words: string) =>
    assertEquals(explainHostCopy(source, destination), `${words}, by ${by}`);
  explains(dense([10, 20]), dense([10, 20]), "one copy of 800 bytes by the host");
  explains(dense([]), dense([]), "one copy of 4 bytes by the host");
  explains(rows, dense([10, 15]), "10 runs of 60 bytes by the host, 16 at a time");
  explains(dense([20, 10]).transposed(), dense([10, 20]), "200 runs of 4 bytes by the host, in tiles of 20 x 10");
  explains(dense([200, 100]).transposed(), dense([100, 200]), "20000 runs of 4 bytes by the host, in tiles of 16 x 64");
  assertEquals(explainHostCopy(dense([0, 3]), dense([0, 3])), "nothing to copy");
  const bytes = StridedMemoryView.fromTypedArray(new Uint8Array(8));
  const [head, tail] = [bytes.sliced(slice(0, 6)), bytes.sliced(slice(2, 8))];
  assertEquals(
    head.explainCopyFrom(tail),
    `one copy of 6 bytes by the host, by ${by}, by way of a copy, because the two may share memory`,
  );
});

test("the error for shapes that differ names a call that makes them equal, if there is one", () => {
  const shape = fc.array(fc.nat(3), { maxLength: 3 });
  check(fc.property(shape, shape, (from, to) => {
    const [source, destination] = [StridedMemoryView.zeros(from), StridedMemoryView.zeros(to)];
    const attempt = (one: () => unknown) => {
      try {
        one();
        return "";
      } catch (error) {
        return String(error);
      }
    };
    const refused = attempt(() => destination.copyFrom(source));
    if (refused === "") return assertEquals(from, to);
    const canRepeat = attempt(() => source.broadcastTo(to)) === "";
    const canReshape = attempt(() => source.reshaped(to)) === "";
    assertEquals(refused.includes(`source.broadcastTo([${to.join(", ")}])`), canRepeat, refused);
    assertEquals(refused.includes(`source.reshaped([${to.join(", ")}])`), canReshape && !canRepeat, refused);
  }));
});
