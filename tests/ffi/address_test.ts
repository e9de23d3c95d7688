/**
 * The rule that the address of movable memory is never taken, and that memory whose address is taken does not move.
 */
import { assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { exactAddress } from "../../src/ffi/address.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { check, fc } from "../support/property.ts";
import { isBun } from "../support/child.ts";
import { collectGarbage } from "../support/collect.ts";

const kinds = [
  Uint8Array,
  Int8Array,
  Uint16Array,
  Int16Array,
  Uint32Array,
  Int32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  Uint8ClampedArray,
] as const;

/** Operations known to make Bun move a small typed array's elements. */
const disturbances: { readonly [name: string]: (array: InstanceType<(typeof kinds)[number]>) => unknown } = {
  buffer: (array) => array.buffer,
  subarray: (array) => array.subarray(0, 1),
  structuredClone: (array) => structuredClone(array),
  DataView: (array) => new DataView(array.buffer, array.byteOffset, array.byteLength),
  slice: (array) => array.slice(),
};

/** A copy of the bytes now at an address. */
function bytesAt(address: bigint, length: number): Uint8Array {
  return new Uint8Array(ffiPort().memory(address, length)).slice();
}

test("the address of a buffer of any size stays that of its bytes, whatever is done with the arrays over it", async () => {
  const port = ffiPort();
  const held: { readonly array: InstanceType<(typeof kinds)[number]>; readonly address: bigint; mark: number }[] = [];
  for (let size = 1; size <= 4096; size++) {
    const Kind = kinds[size % kinds.length] ?? Uint8Array;
    // Created in both ways: the array first, with its buffer requested later, or the buffer first.
    const count = Math.ceil(size / Kind.BYTES_PER_ELEMENT);
    const array = size % 2 === 0 ? new Kind(count) : new Kind(new ArrayBuffer(count * Kind.BYTES_PER_ELEMENT));
    held.push({ array, address: port.addressOf(array.buffer as ArrayBuffer), mark: size % 255 });
  }
  const verify = () => {
    for (const one of held) {
      const { array, address, mark } = one;
      assertEquals(port.addressOf(array.buffer as ArrayBuffer), address, `${array.byteLength} bytes moved`);
      new Uint8Array(array.buffer).fill(mark); // from JavaScript to C
      assertEquals(bytesAt(address, array.byteLength), new Uint8Array(array.byteLength).fill(mark));
      one.mark = (mark + 1) % 255;
      libc().memory.memset(address, one.mark, BigInt(array.byteLength)); // and back
      assertEquals(new Uint8Array(array.buffer), new Uint8Array(array.byteLength).fill(one.mark));
    }
  };
  verify();
  for (const disturb of Object.values(disturbances)) for (const { array } of held) disturb(array);
  verify();
  await collectGarbage();
  verify();
});

test("two live buffers never share a byte, and the address is that of byte 0", () => {
  const port = ffiPort();
  check(
    fc.property(fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 40 }), (sizes) => {
      const buffers = sizes.map((size) => new ArrayBuffer(size));
      const spans = buffers.map((buffer) => ({ from: port.addressOf(buffer), to: BigInt(buffer.byteLength) }))
        .map(({ from, to }) => ({ from, to: from + to }))
        .toSorted((a, b) => Number(a.from - b.from));
      for (const [i, { to }] of spans.entries()) {
        const next = spans[i + 1];
        if (next !== undefined) assertEquals(to <= next.from, true);
      }
      for (const [i, buffer] of buffers.entries()) {
        new Uint8Array(buffer)[0] = i + 1;
        assertEquals(bytesAt(port.addressOf(buffer), 1)[0], i + 1);
      }
    }),
    200,
  );
});

test("an empty or detached buffer has the address NULL", () => {
  const port = ffiPort();
  assertEquals(port.addressOf(new ArrayBuffer(0)), 0n);
  const buffer = new ArrayBuffer(64);
  assertNotEquals(port.addressOf(buffer), 0n);
  structuredClone(buffer, { transfer: [buffer] });
  assertEquals(port.addressOf(buffer), 0n);
});

test("the address of a resizable buffer is refused, even of one that is empty", () => {
  for (const [size, maxByteLength] of [[8, 16], [8, 8], [0, 16]] as const) {
    const buffer = new ArrayBuffer(size, { maxByteLength });
    assertThrows(() => ffiPort().addressOf(buffer), TypeError, "Cannot take the address of a resizable ArrayBuffer");
  }
});

/** Checked by the compiler, never run: objects without an address. */
export function haveNoAddress(array: Uint8Array<ArrayBuffer>, view: DataView<ArrayBuffer>, shared: SharedArrayBuffer) {
  // @ts-expect-error a typed array may move: its buffer has the address
  ffiPort().addressOf(array);
  // @ts-expect-error the same holds for a DataView
  ffiPort().addressOf(view);
  // @ts-expect-error no library may see memory change under it
  ffiPort().addressOf(shared);
}

// The control: why the rule exists. In Bun the elements of a small typed array lie in garbage-collected memory until
// their buffer is requested (oven-sh/bun#32054). If this fails, a new version of Bun has fixed that.
for (const [name, disturb] of Object.entries(disturbances).filter(([name]) => isBun && name !== "slice")) {
  test(`control: the address that Bun gives of a small typed array is stale after ${name}`, () => {
    const { ptr } = process.getBuiltinModule("bun:ffi") as unknown as { ptr(array: Uint8Array): number };
    const array = new Uint8Array(8);
    const before = ptr(array);
    disturb(array);
    assertNotEquals(ptr(array), before);
    const large = new Uint8Array(new ArrayBuffer(8)); // what the rule requires is not affected
    const stays = ptr(large);
    disturb(large);
    assertEquals(ptr(large), stays);
  });
}

test("an address is a number if that is exact, and 0 otherwise", () => {
  const addresses = fc.oneof(
    fc.bigInt(0n, 2n ** 64n - 1n),
    fc.bigInt(2n ** 53n - 3n, 2n ** 53n + 3n),
    fc.bigInt(0n, 2n ** 48n),
  );
  check(
    fc.property(addresses, (address) => {
      assertEquals(BigInt(exactAddress(address)), address < 2n ** 53n ? address : 0n);
    }),
    1000,
  );
});
