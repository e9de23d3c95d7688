import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { CScalar, Field, StructDescription } from "../../bindings/abi.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { layoutOf, roundUp, struct } from "../../src/ffi/struct.ts";
import { check, fc } from "../support/property.ts";
import { needs } from "../support/needs.ts";
import { missingCompiler } from "../support/compiled.ts";
import { alignmentOf, descriptions, type Place, placesOf, sizeOf } from "./layout_oracle.ts";
import { cTypes, values } from "./scalars.ts";
import { scratchFolder } from "../support/scratch.ts";

/** The value of a field at a property path. */
function get(view: object, path: readonly string[]): unknown {
  return path.reduce((value: unknown, name) => Reflect.get(value as object, name), view);
}

/** Assigns a field at a property path. */
function set(view: object, path: readonly string[], value: unknown): void {
  const last = path.at(-1) ?? "";
  (get(view, path.slice(0, -1)) as Record<string, unknown>)[last] = value;
}

/** Reads a scalar from memory with a DataView; a `size` as a bigint, since it may be too large for a number. */
function oracleGet(type: CScalar, memory: DataView, at: number): number | bigint {
  if (type === "i8") return memory.getInt8(at);
  if (type === "u8") return memory.getUint8(at);
  if (type === "i16") return memory.getInt16(at, true);
  if (type === "u16") return memory.getUint16(at, true);
  if (type === "i32") return memory.getInt32(at, true);
  if (type === "u32") return memory.getUint32(at, true);
  if (type === "f32") return memory.getFloat32(at, true);
  if (type === "f64") return memory.getFloat64(at, true);
  return type === "i64" ? memory.getBigInt64(at, true) : memory.getBigUint64(at, true);
}

/** Writes a scalar as bytes, lowest first. */
function oracleSet(type: CScalar, memory: DataView, at: number, value: number | bigint): void {
  if (type === "f32") return memory.setFloat32(at, Number(value), true);
  if (type === "f64") return memory.setFloat64(at, Number(value), true);
  const bits = BigInt.asUintN(64, BigInt(value));
  for (let byte = 0; byte < sizeOf(type); byte++) {
    memory.setUint8(at + byte, Number((bits >> BigInt(8 * byte)) & 0xffn));
  }
}

const safeSize = fc.oneof(
  fc.constantFrom(0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER),
  fc.maxSafeNat(),
);

/** The values that a field accepts: those of its type, except that a `size` is a number here. */
function fieldValues(type: CScalar): fc.Arbitrary<number | bigint> {
  return type === "size" ? safeSize : values[type];
}

function isScalar(place: Place): place is Place & { readonly field: CScalar } {
  return typeof place.field === "string";
}

test("size, alignment and every offset are those that an independent calculator finds", () => {
  check(
    fc.property(descriptions, (description) => {
      const { size, alignment, offsets } = layoutOf(description);
      const own = placesOf(description).filter(({ path }) => path.length === 1);
      assertEquals({ size, alignment }, { size: sizeOf(description), alignment: alignmentOf(description) });
      assertEquals({ ...offsets }, Object.fromEntries(own.map(({ path, offset }) => [path[0], offset])));
      assertEquals({ size, alignment, offsets }, pick(struct(description)));
    }),
    500,
  );
});

function pick({ size, alignment, offsets }: ReturnType<typeof layoutOf>) {
  return { size, alignment, offsets };
}

/** The C declaration of a field. */
function declared(field: Field, name: string): string {
  if (typeof field === "string") return `${cTypes[field]} ${name};`;
  if (Array.isArray(field)) return declared(field[0], `${name}[${field[1]}]`);
  return `struct { ${fieldsIn(field as StructDescription)} } ${name};`;
}

function fieldsIn(description: StructDescription): string {
  return Object.entries(description).map(([name, field]) => declared(field, name)).join(" ");
}

/** Sizes and nested offsets as a C program prints them, one line per struct. */
function printedByC(structs: readonly StructDescription[]): number[][] {
  const source = join(scratchFolder(), "layout.c");
  const declarations = structs.map((description, i) => `struct s${i} { ${fieldsIn(description)} };`);
  const lines = structs.map((description, i) => {
    const names = placesOf(description).map(({ path }) => path.join("."));
    const offsets = names.map((name) => `printf(" %zu", offsetof(struct s${i}, ${name}));`).join(" ");
    return `printf("%zu", sizeof(struct s${i})); ${offsets} puts("");`;
  });
  const headers = ["stddef", "stdint", "stdio"].map((name) => `#include <${name}.h>`);
  writeFileSync(source, [...headers, ...declarations, "int main(void) {", ...lines, "}"].join("\n"));
  const program = source.slice(0, -2);
  const { status, stderr } = spawnSync("cc", ["-o", program, source], { encoding: "utf8" });
  if (status !== 0) throw new Error(`cc cannot compile ${source}:\n${stderr}`);
  const { stdout } = spawnSync(program, { encoding: "utf8" });
  return stdout.trim().split("\n").map((line) => line.split(" ").map(Number));
}

/** The same by the code under test. */
function laidOut(description: StructDescription): number[] {
  const nested = (from: StructDescription): number[] =>
    Object.entries(from).flatMap(([name, field]) => {
      const offset = layoutOf(from).offsets[name] ?? NaN;
      const inner = typeof field === "string" || Array.isArray(field) ? [] : nested(field as StructDescription);
      return [offset, ...inner.map((at) => offset + at)];
    });
  return [layoutOf(description).size, ...nested(description)];
}

test(...needs(missingCompiler, "size and every offset, nested ones too, are those that the C compiler finds"), () => {
  check(
    fc.property(fc.noShrink(fc.array(descriptions, { minLength: 50, maxLength: 50 })), (structs) => {
      assertEquals(structs.map(laidOut), printedByC(structs));
    }),
    1,
  );
});

/** A struct with a value for each of its scalars, and random bytes to write it over. */
const written = descriptions.chain((description) => {
  const places = placesOf(description).filter(isScalar);
  return fc.record({
    description: fc.constant(description),
    places: fc.constant(places),
    given: fc.tuple(...places.map(({ field }) => fieldValues(field))),
    before: fc.uint8Array({ minLength: sizeOf(description) + 24, maxLength: sizeOf(description) + 24 }),
    start: fc.constantFrom(0, 8, 16),
  });
});

test("writing the fields writes exactly their bytes, and reading gives the same values", () => {
  const { malloc, free } = libc().loading;
  check(
    fc.property(written, ({ description, places, given, before, start }) => {
      const expected = new DataView(new Uint8Array(before).buffer);
      const address = malloc(BigInt(before.length));
      try {
        const bytes = new Uint8Array(ffiPort().memory(address, before.length));
        bytes.set(before);
        const view = struct(description).at(address + BigInt(start));
        assertEquals(view.$address, address + BigInt(start));
        assertEquals(view.$bytes.byteLength, sizeOf(description));
        for (const [i, { path, field, offset }] of places.entries()) {
          set(view, path, given[i]);
          oracleSet(field, expected, start + offset, given[i] ?? NaN);
        }
        // A NaN may be written with other bits than the oracle's: compare NaNs as values only.
        const nans = places.filter((_, i) => Number.isNaN(given[i]));
        for (const { field, offset } of nans) {
          assert(Number.isNaN(oracleGet(field, new DataView(bytes.buffer), start + offset)));
          bytes.fill(0, start + offset, start + offset + sizeOf(field));
          new Uint8Array(expected.buffer).fill(0, start + offset, start + offset + sizeOf(field));
        }
        assertEquals(bytes.slice(), new Uint8Array(expected.buffer));
        for (const [i, place] of places.entries()) {
          if (!nans.includes(place)) assertEquals(get(view, place.path), given[i]);
        }
      } finally {
        free(address);
      }
    }),
    300,
  );
});

test("fields read what lies in memory, for any bytes", () => {
  check(
    fc.property(written, ({ description, places, before, start }) => {
      const memory = new DataView(new Uint8Array(before).buffer);
      const view = struct(description).over(memory.buffer, 0x1000n, start);
      assertEquals(view.$address, 0x1000n + BigInt(start));
      for (const { path, field, offset } of places) {
        const expected = oracleGet(field, memory, start + offset);
        if (field !== "size") assertEquals(get(view, path), expected);
        else if (expected <= Number.MAX_SAFE_INTEGER) assertEquals(get(view, path), Number(expected));
        else assertThrows(() => get(view, path), RangeError, `Cannot read a size_t: expected a safe integer`);
      }
      assertEquals(new Uint8Array(memory.buffer), new Uint8Array(before)); // reading writes nothing
    }),
    300,
  );
});

test("nested structs and arrays are the same bytes, under their own address", () => {
  check(
    fc.property(written, ({ description, before, start }) => {
      const memory = new Uint8Array(new Uint8Array(before).buffer);
      const view = struct(description).over(memory.buffer, 0x7f00_0000_1000n, start);
      for (const { path, field, offset } of placesOf(description)) {
        if (typeof field === "string") continue;
        const value = get(view, path);
        assertStrictEquals(get(view, path), value); // cached
        const [from, length] = [start + offset, sizeOf(field)];
        if (Array.isArray(field)) {
          assert(value instanceof Uint8Array);
          assertStrictEquals(value.buffer, memory.buffer);
          assertEquals([value.byteOffset, value.byteLength], [from, length]);
        } else {
          const { $address, $bytes } = value as typeof view;
          assertEquals($address, 0x7f00_0000_1000n + BigInt(from));
          assertStrictEquals($bytes.buffer, memory.buffer);
          assertEquals([$bytes.byteOffset, $bytes.byteLength], [from, length]);
        }
      }
    }),
    300,
  );
});

const Point = { x: "i32", y: "i32" } as const;
const Shape = { kind: "u8", corners: [Point, 3], centre: Point, name: ["u8", 5], length: "size" } as const;

test("C sees what a nested view and an array by value write, and they see what C writes", () => {
  const { loading, memory } = libc();
  const address = loading.calloc(1n, BigInt(layoutOf(Shape).size));
  const shape = struct(Shape).at(address);
  assertEquals(layoutOf(Shape), {
    size: 56,
    alignment: 8,
    offsets: { kind: 0, corners: 4, centre: 28, name: 36, length: 48 },
  });
  shape.centre.y = -7;
  shape.name.set([1, 2, 3, 4, 5]);
  const raw = new Uint8Array(ffiPort().memory(address, 56));
  assertEquals([...raw.subarray(32, 41)], [0xf9, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5]);
  memory.memset(address + 28n, 1, 4n);
  assertEquals(shape.centre.x, 0x0101_0101);
  memory.memset(address + 4n, 0xff, 8n);
  const corner = struct(Point).over(shape.corners.buffer, address, shape.corners.byteOffset);
  assertEquals([corner.x, corner.y, corner.$address], [-1, -1, address + 4n]);
  loading.free(address);
});

test("a size that is not a safe integer is refused, and memory stays as it was", () => {
  const view = struct({ before: "u32", count: "size", after: "u32" }).over(new ArrayBuffer(24), 0n);
  new Uint8Array(view.$bytes.buffer).fill(0x5a);
  const untouched = new Uint8Array(view.$bytes.buffer).slice();
  for (const value of [-1, 0.5, NaN, Infinity, -Infinity, 2 ** 53, 2 ** 64, -(2 ** 32)]) {
    assertThrows(() => view.count = value, RangeError, `Cannot write a size_t: expected a safe integer of at least 0`);
    assertEquals(new Uint8Array(view.$bytes.buffer), untouched);
  }
});

test("a size in memory is read up to the largest safe integer, and refused above it", () => {
  const view = struct({ count: "size" }).over(new ArrayBuffer(8), 0n);
  for (const value of [0n, 2n ** 32n - 1n, 2n ** 32n, 2n ** 53n - 1n]) {
    view.$bytes.setBigUint64(0, value, true);
    assertEquals(view.count, Number(value));
  }
  for (const value of [2n ** 53n, 2n ** 53n + 1n, 2n ** 64n - 1n]) {
    view.$bytes.setBigUint64(0, value, true);
    assertThrows(() => view.count, RangeError, `got ${value}`);
  }
});

test("a field that is a struct or an array cannot be assigned, only its parts", () => {
  const shape = struct(Shape).over(new ArrayBuffer(56), 0n);
  for (const name of ["centre", "name"] as const) {
    assertThrows(() => Object.assign(shape, { [name]: null }), TypeError);
    assert(shape[name] !== null);
    assertThrows(() => Object.assign(shape, { [name]: null }), TypeError); // also after it has been read
  }
});

test("a description has one type, and equal ones of other identity have the same layout", () => {
  assertStrictEquals(struct(Point), struct(Point));
  assertEquals(layoutOf({ ...Point }), layoutOf(Point));
});

test("fields may have the names of properties that every object has", () => {
  const view = struct({ constructor: "u8", toString: "u16", hasOwnProperty: "u32", length: "u64" }).over(
    new ArrayBuffer(16),
    0n,
  );
  view.constructor = 1;
  view.toString = 2;
  view.hasOwnProperty = 3;
  view.length = 4n;
  assertEquals([...new Uint8Array(view.$bytes.buffer)], [1, 0, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
});

test("a struct that does not fit the buffer is refused", () => {
  const type = struct(Point);
  for (const [length, offset] of [[7, 0], [8, 1], [16, 9], [0, 0]] as const) {
    assertThrows(() => type.over(new ArrayBuffer(length), 0n, offset), RangeError);
  }
  assertThrows(() => type.at(0n), RangeError, "at NULL");
});

test("roundUp gives the next multiple", () => {
  check(
    fc.property(fc.nat(2 ** 31), fc.nat(16).map((bits) => 2 ** bits), (value, alignment) => {
      const rounded = roundUp(value, alignment);
      assert(rounded >= value && rounded < value + alignment && rounded % alignment === 0);
    }),
  );
});
