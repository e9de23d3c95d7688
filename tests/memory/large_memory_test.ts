/** Memory larger than any array of a runtime: Bun's have at most 4 GiB. It is never touched, but for a few pages. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { join } from "node:path";
import { test } from "node:test";
import {
  ArrowArray,
  arrowField,
  DType,
  HostMemoryResource,
  MemoryBuffer,
  readNpy,
  slice,
  StridedMemoryView,
  writeNpy,
} from "../../mod.ts";
import { partOf } from "../../src/memory/mod.ts";
import { collectGarbage } from "../support/collect.ts";
import { check, fc } from "../support/property.ts";
import { scratchFolder } from "../support/scratch.ts";

const size = 5 * 2 ** 30;

/** A view of bytes, of which the first and the last are set. */
function large(): StridedMemoryView<"uint8"> {
  const buffer = new HostMemoryResource().allocate(size);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [size], dtype: "uint8" });
  view.set(7, 0);
  view.set(9, -1);
  return view;
}

test("elements at both ends of 5 GiB are read, written and printed, one by one and as arrays", async () => {
  const view = large();
  using _ = view.buffer;
  assertEquals([view.get(0), view.get(size - 1)], [7, 9]);
  assertEquals(view.sliced(-1).item(), 9);
  assertEquals(view.reshaped([5, -1]).get(-1, -1), 9);
  const ends = view.sliced(slice(null, null, size - 1)); // two elements, further apart than an array is long
  assertEquals(ends.toArray(), [7, 9]);
  assertEquals(JSON.stringify(ends), "[7,9]");
  assertEquals(`${ends}`, "[7 9]");
  assertEquals(`${view.sliced(slice(null, null, -(size - 1)))}`, "[9 7]");
  assertEquals(await ends.toTypedArray(), Uint8Array.of(7, 9));
  assertEquals(ends.copy({ dtype: "float64" }).toArray(), [7, 9]);
  assert(ends.equals(StridedMemoryView.fromTypedArray(Uint8Array.of(7, 9))));
  const last = view.sliced(slice(-2, null)).view("uint16");
  assertEquals(last.toArray().length, 1);
  ends.fill(3);
  assertEquals([view.get(0), view.get(-1)], [3, 3]);
  const end = view.sliced(slice(-16, null));
  end.copyFrom(StridedMemoryView.arange(16), { convert: true }); // few elements go through WebAssembly's memory
  assertEquals(end.toArray(), Array.from({ length: 16 }, (_, i) => i));
  assertEquals(end.view("uint32").asTypedArray()[3], 0x0f0e0d0c);
});

const packed = DType.from({ code: 0, bits: 4, lanes: 1 });

test("packed elements behind 4 GiB are copied", () => {
  const view = large();
  using _ = view.buffer;
  const end = view.sliced(slice(-2, null)).view(packed);
  end.copyFrom(StridedMemoryView.fromArray([1, 2, 3, -4], packed));
  assertEquals(end.toArray(), [1, 2, 3, -4]);
  assertEquals(end.get(-1), -4);
});

test("what lies behind 4 GiB is written to a file, and read as an Arrow array", async () => {
  const view = large();
  using _ = view.buffer;
  const end = view.sliced(slice(-2, null));
  const path = join(scratchFolder(), "end.npy");
  await writeNpy(path, end);
  using read = await readNpy(path);
  assertEquals(read.toArray(), [0, 9]);
  const bits = new ArrowArray({ field: arrowField("b"), length: 4, buffers: [null, view.sliced(slice(-1, null))] });
  assertEquals(bits.toArray(), [true, false, false, true]);
});

test("closing 5 GiB empties the arrays over its parts", () => {
  const view = large();
  const [first, last] = [view.sliced(slice(0, 2)).asTypedArray(), view.sliced(slice(-2, null)).asTypedArray()];
  assertEquals([first[0], last[1]], [7, 9]);
  view.buffer.close();
  assertEquals([first.length, last.length], [0, 0]);
  assertThrows(() => view.get(0), TypeError, "closed");
});

test("what a runtime has no array for is refused with the way to a part of it", () => {
  const view = large();
  using buffer = view.buffer;
  view.get(0);
  for (const make of [() => buffer.bytes(), () => view.asTypedArray()]) {
    try {
      assertEquals(make().length, size);
    } catch (error) {
      assert(error instanceof RangeError && error.message.includes("View a part of it"), `${error}`);
    }
  }
  using part = MemoryBuffer.fromPointer(buffer.ptr + BigInt(size - 8), 8, { owner: buffer });
  assertEquals(part.bytes()[7], 9);
});

test("a part has the same bytes whichever arrays are over a buffer, of whatever greatest length", async () => {
  const parts = fc.array(fc.tuple(fc.nat(63), fc.nat(64)), { minLength: 1, maxLength: 8 });
  await check(fc.property(fc.constantFrom(8, 16, 32), parts, (most, all) => {
    using buffer = new HostMemoryResource().allocate(64);
    const bytes = buffer.bytes().map((_, i) => i);
    buffer.bytes().set(bytes);
    const made = all.map(([start, length]) => {
      const part = partOf(buffer, start, Math.min(length, most, 64 - start), most);
      const own = new Uint8Array(part.buffer, part.byteOffset, part.byteLength);
      assertEquals(own, bytes.subarray(start, start + part.byteLength));
      return own;
    });
    // Parts of up to half that length share arrays, of which there are few.
    const shared = made.filter(({ length }) => length <= most / 2).map((own) => own.buffer);
    assert(new Set(shared).size <= 64 / (most / 2), `${new Set(shared).size} arrays of ${most}`);
    assertThrows(() => partOf(buffer, 0, most + 1, most), RangeError, "View a part of it");
    buffer.close();
    assertEquals(made.map(({ length }) => length), made.map(() => 0));
  }));
});

test("an array over a part keeps the buffer from being collected", async () => {
  let frees = 0;
  const make = () => {
    const { buffer, ptr } = memory();
    const part = MemoryBuffer.fromAllocation({ ptr, size: 64, device: null, stream: null, owner: buffer, free });
    return partOf(part, 40, 8, 16);
  };
  const memory = () => {
    const buffer = new HostMemoryResource().allocate(64);
    return { buffer, ptr: buffer.ptr };
  };
  const free = () => frees++;
  const kept = make();
  await collectGarbage();
  assertEquals([frees, kept.byteLength], [0, 8]);
});

test("an array over a part that a program has transferred is made again, and closing the buffer is no error", () => {
  const buffer = new HostMemoryResource().allocate(64);
  buffer.bytes()[41] = 5;
  partOf(buffer, 40, 8, 16).buffer.transfer();
  const again = partOf(buffer, 40, 8, 16);
  assertEquals(again.getUint8(1), 5);
  again.buffer.transfer();
  buffer.close();
});
