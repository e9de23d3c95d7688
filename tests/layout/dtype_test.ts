import { assert, assertEquals, assertFalse, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { DType } from "../../src/layout/mod.ts";

test("every dtype comes back from its name and from its DLPack type", () => {
  const dtypes = DType.all();
  assertEquals(new Set(dtypes.map(String)).size, dtypes.length);
  for (const dtype of dtypes) {
    assert(DType.from(dtype.name).equals(dtype), dtype.name);
    assert(DType.from(dtype.dlpack).equals(dtype), dtype.name);
    assertStrictEquals(DType.from(dtype), dtype);
  }
});

test("NumPy type strings and Arrow formats lead to the dtype and back", () => {
  const names: [source: string, name: string, form: "typestr" | "arrowFormat"][] = [
    ["|b1", "bool", "typestr"],
    ["|i1", "int8", "typestr"],
    ["|u1", "uint8", "typestr"],
    ["<i2", "int16", "typestr"],
    ["<u2", "uint16", "typestr"],
    ["<i4", "int32", "typestr"],
    ["<u4", "uint32", "typestr"],
    ["<i8", "int64", "typestr"],
    ["<u8", "uint64", "typestr"],
    ["<f2", "float16", "typestr"],
    ["<f4", "float32", "typestr"],
    ["<f8", "float64", "typestr"],
    ["<c8", "complex64", "typestr"],
    ["<c16", "complex128", "typestr"],
    ["b", "bool1_packed", "arrowFormat"],
    ["c", "int8", "arrowFormat"],
    ["C", "uint8", "arrowFormat"],
    ["s", "int16", "arrowFormat"],
    ["S", "uint16", "arrowFormat"],
    ["i", "int32", "arrowFormat"],
    ["I", "uint32", "arrowFormat"],
    ["l", "int64", "arrowFormat"],
    ["L", "uint64", "arrowFormat"],
    ["e", "float16", "arrowFormat"],
    ["f", "float32", "arrowFormat"],
    ["g", "float64", "arrowFormat"],
  ];
  for (const [source, name, form] of names) {
    assertEquals(DType.from(source).name, name);
    assertEquals(DType.from(name)[form], source);
    assertEquals(DType.from(name).require(form), source);
  }
  // Nobody else has such a name.
  const withName = (form: "typestr" | "arrowFormat") => DType.all().filter((dtype) => dtype[form] !== null).length;
  assertEquals(withName("typestr"), names.filter(([, , form]) => form === "typestr").length);
  assertEquals(withName("arrowFormat"), names.filter(([, , form]) => form === "arrowFormat").length);
});

test("a dtype that another convention has no name for says so", () => {
  assertThrows(() => DType.from("bfloat16").require("typestr"), TypeError, "Exchange it by DLPack");
  assertThrows(() => DType.from("bool").require("arrowFormat"), TypeError, "bool1_packed");
  assertThrows(() => DType.from("float8_e5m2").require("typedArray"), TypeError, "uint8");
});

test("sub-byte elements are padded, packed with lanes or packed without", () => {
  const padded = DType.from("float4_e2m1fn");
  const lanes = DType.from("float4_e2m1fnx2");
  const packed = DType.from("float4_e2m1fn_packed");
  assertEquals([padded.itemsize, lanes.itemsize, packed.itemsize], [1, 1, 0.5]);
  assertEquals(DType.from({ code: 17, bits: 4, lanes: 1 }).name, packed.name);
  assertEquals(DType.from({ code: 17, bits: 4, lanes: 1, padded: true }).name, padded.name);
  assertEquals(DType.from({ code: 17, bits: 4, lanes: 2 }).name, lanes.name);
  assertFalse(padded.equals(packed));
  // The header's formula rounds every element with lanes up to whole bytes.
  assertEquals(DType.from({ code: 15, bits: 6, lanes: 2 }).itemsize, 2);
  assertEquals(DType.from({ code: 15, bits: 6, lanes: 4 }).itemsize, 3);
});

test("dtypes that cannot be carried are refused with the reason", () => {
  assertThrows(() => DType.from(">f8"), TypeError, "big-endian");
  assertThrows(() => DType.from("|O"), TypeError, "Python objects");
  assertThrows(() => DType.from("|V2"), TypeError, "raw bytes");
});

test("elements of whole bytes are read and written little-endian", () => {
  const view = new DataView(new ArrayBuffer(32));
  const cases: [name: string, value: number | bigint | boolean | { re: number; im: number }, bytes: number[]][] = [
    ["int8", -2, [0xfe]],
    ["uint16", 0x1234, [0x34, 0x12]],
    ["int32", -2, [0xfe, 0xff, 0xff, 0xff]],
    ["uint32", 0xfedcba98, [0x98, 0xba, 0xdc, 0xfe]],
    ["int64", -2n, [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
    ["uint64", 0x8000000000000001n, [1, 0, 0, 0, 0, 0, 0, 0x80]],
    ["handle64", 0x7fff00000010n, [0x10, 0, 0, 0, 0xff, 0x7f, 0, 0]],
    ["float16", 1.5, [0, 0x3e]],
    ["bfloat16", 1.5, [0xc0, 0x3f]],
    ["float32", -1.5, [0, 0, 0xc0, 0xbf]],
    ["float64", -1.5, [0, 0, 0, 0, 0, 0, 0xf8, 0xbf]],
    ["complex64", { re: 1.5, im: -1.5 }, [0, 0, 0xc0, 0x3f, 0, 0, 0xc0, 0xbf]],
    ["bool", true, [1]],
  ];
  for (const [name, value, bytes] of cases) {
    const dtype = DType.from(name);
    dtype.write(view, 3, value);
    assertEquals([...new Uint8Array(view.buffer, 3, dtype.itemsize)], bytes, name);
    assertEquals(dtype.read(view, 3), value);
  }
});
