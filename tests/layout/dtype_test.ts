import {
  assert,
  assertEquals,
  assertFalse,
  assertNotStrictEquals,
  assertStrictEquals,
  assertThrows,
} from "@std/assert";
import { test } from "node:test";
import { type Complex, DType, type TypedArray } from "../../src/layout/mod.ts";

/** What a caller without a type checker may pass. */
function untyped<T>(value: unknown): T {
  return value as T;
}

test("every dtype is restored from its name and from its DLPack type", () => {
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
  // No other dtype has such a name.
  const withName = (form: "typestr" | "arrowFormat") => DType.all().filter((dtype) => dtype[form] !== null).length;
  assertEquals(withName("typestr"), names.filter(([, , form]) => form === "typestr").length);
  assertEquals(withName("arrowFormat"), names.filter(([, , form]) => form === "arrowFormat").length);
});

test("a dtype that another convention has no name for says so", () => {
  assertThrows(() => DType.from("bfloat16").require("typestr"), TypeError, "Exchange it by DLPack");
  assertThrows(() => DType.from("bool").require("arrowFormat"), TypeError, "bool1_packed");
  assertThrows(() => DType.from("float8_e5m2").require("typedArray"), TypeError, "Instead take the codes as uint8");
  // Each error offers an existing type of the right size: it once offered uint128.
  for (const dtype of [...DType.all(), DType.from("float32x4"), DType.from("int4x6")]) {
    if (dtype.arrowFormat !== null || dtype.name === "bool") continue;
    const { message } = assertThrows(() => dtype.require("arrowFormat"), TypeError);
    const [, offered = "", isPart] = /the codes as (\w+)(, several of them)?/.exec(message) ?? [];
    const { itemsize } = DType.from(offered);
    if (isPart === undefined) assertEquals(itemsize, Math.ceil(dtype.itemsize), message);
    else assertEquals(dtype.itemsize % itemsize, 0, message);
  }
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
  // The header's formula rounds each multi-lane element up to whole bytes.
  assertEquals(DType.from({ code: 15, bits: 6, lanes: 2 }).itemsize, 2);
  assertEquals(DType.from({ code: 15, bits: 6, lanes: 4 }).itemsize, 3);
});

test("unsupported dtypes are refused with the reason", () => {
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

test("the typed array of a dtype reads the same memory, and leads back to the dtype", () => {
  const arrays = [
    new Int8Array([-1, 2]),
    new Uint8Array([1, 255]),
    new Int16Array([-1, 2]),
    new Uint16Array([1, 65535]),
    new Int32Array([-1, 2]),
    new Uint32Array([1, 4294967295]),
    new BigInt64Array([-1n, 2n]),
    new BigUint64Array([1n, 2n ** 64n - 1n]),
    new Float16Array([0.5, -1.5]),
    new Float32Array([0.5, -1.5]),
    new Float64Array([0.1, -1.5]),
  ];
  for (const array of arrays) {
    const dtype = DType.fromTypedArray(array);
    assertStrictEquals(dtype.typedArray, array.constructor);
    assertStrictEquals(dtype.require("typedArray"), array.constructor);
    assertEquals(dtype.itemsize, array.BYTES_PER_ELEMENT);
    const view = new DataView(array.buffer);
    assertEquals(dtype.read(view, array.BYTES_PER_ELEMENT), array[1]);
    assertEquals(DType.fromTypedArray(array.subarray(1)).name, dtype.name);
  }
  assertEquals(DType.fromTypedArray(new Uint8ClampedArray(1)).name, "uint8");
  assertStrictEquals(DType.from("bool").typedArray, Uint8Array);
  assertStrictEquals(DType.from("complex64").typedArray, Float32Array);
  assertStrictEquals(DType.from("complex128").typedArray, Float64Array);
  assertStrictEquals(DType.from("float32x4").typedArray, Float32Array);
  for (const name of ["bfloat16", "float8_e4m3fn", "float4_e2m1fn_packed", "int4", "bool1"]) {
    assertEquals(DType.from(name).typedArray, null);
  }
  assertThrows(
    () => DType.fromTypedArray(untyped<TypedArray>([1, 2])),
    TypeError,
    "Expected a typed array, got (1, 2)",
  );
});

test("lanes are an array of values, written all or not at all", () => {
  const dtype = DType.from("float32x3");
  assertEquals([dtype.lanes, dtype.bits, dtype.itemsize, dtype.typestr, dtype.arrowFormat], [3, 32, 12, null, null]);
  assertEquals(dtype.dlpack, { code: 2, bits: 32, lanes: 3, padded: false });
  const view = new DataView(new ArrayBuffer(12));
  dtype.write(view, 0, [1, 2, 3]);
  assertEquals(dtype.read(view, 0), [1, 2, 3]);
  assertThrows(() => (dtype as DType).write(view, 0, [4, 5, true]), TypeError, "a number for float32, got true");
  assertEquals(dtype.read(view, 0), [1, 2, 3]);
  assertEquals(DType.from("complex64x2").itemsize, 16);
  assertEquals(DType.from({ code: 2, bits: 32, lanes: 65535 }).lanes, 65535);
  assert(DType.from("int8x100").equals(DType.from({ code: 0, bits: 8, lanes: 100 })));
});

test("so are the two parts of a complex number, each of which is asked for once", () => {
  const dtype = DType.from("complex64");
  const view = new DataView(new ArrayBuffer(8));
  dtype.write(view, 0, { re: 1, im: 2 });
  const own = new RangeError("it throws");
  let asked = 0;
  const imaginary = (parts: readonly unknown[]) => ({
    re: 7,
    get im(): number {
      const part = parts[asked++];
      if (part === own) throw own;
      return part as number;
    },
  });
  for (const [parts, error] of [[[own], RangeError], [[8, own], null], [["x"], TypeError]] as const) {
    asked = 0;
    dtype.write(view, 0, { re: 1, im: 2 });
    const write = () => dtype.write(view, 0, imaginary(parts));
    if (error === null) write();
    else assertThrows(write, error);
    assertEquals(asked, 1);
    assertEquals(dtype.read(view, 0), error === null ? { re: 7, im: 8 } : { re: 1, im: 2 });
  }
  // A Python object is a function, whose attributes may be anything.
  const callable: unknown = Object.assign(() => 0, { re: 3, im: 4 });
  assertThrows(() => dtype.write(view, 0, callable as Complex), TypeError, "Expected { re, im } or a number");
});

test("a value that the dtype cannot hold is refused, not changed to fit", () => {
  const view = new DataView(new ArrayBuffer(16));
  const bad: [name: string, value: unknown, kind: typeof RangeError | typeof TypeError, message: string][] = [
    ["int8", 128, RangeError, "an integer from -128 to 127 for int8, got 128"],
    ["int8", -129, RangeError, "got -129"],
    ["uint8", -1, RangeError, "from 0 to 255 for uint8, got -1"],
    ["uint16", 65536, RangeError, "got 65536"],
    ["int32", 2 ** 31, RangeError, "got 2147483648"],
    ["uint32", 0.5, RangeError, "got 0.5"],
    ["int4_packed", 8, RangeError, "from -8 to 7 for int4, got 8"],
    ["uint1", 2, RangeError, "from 0 to 1 for uint1, got 2"],
    ["int16", 1n, TypeError, "a number for int16, got 1n"],
    ["int64", 2n ** 63n, RangeError, "got 9223372036854775808n"],
    ["uint64", -1n, RangeError, "got -1n"],
    ["int64", 2 ** 53, RangeError, "up to 2^53 - 1 for int64"],
    ["int64", "1", TypeError, 'a bigint for int64, got "1"'],
    ["float32", 1n, TypeError, "a number for float32, got 1n"],
    ["bfloat16", "1", TypeError, "a number for bfloat16"],
    ["bool", 1, TypeError, "a boolean for bool, got 1"],
    ["complex64", "1", TypeError, '{ re, im } or a number for complex64, got "1"'],
    ["complex64", { re: 1 }, TypeError, "{ re, im } or a number for complex64"],
    ["complex64", null, TypeError, "{ re, im } or a number for complex64"],
    ["float4_e2m1fn", NaN, RangeError, "float4_e2m1fn can represent, got NaN: it has no NaN"],
  ];
  for (const [name, value, kind, message] of bad) {
    assertThrows(() => DType.from(name).write(view, 0, untyped(value)), kind, message);
    assertEquals(new Uint8Array(view.buffer).every((byte) => byte === 0), true, name);
  }
  DType.from("int64").write(view, 0, 5);
  assertEquals(DType.from("int64").read(view, 0), 5n);
  for (const memory of [new ArrayBuffer(8), new Uint8Array(8), undefined] as unknown[]) {
    assertThrows(() => DType.from("int16").read(memory as DataView, 0), TypeError, "as a DataView, got");
    assertThrows(() => DType.from("int16").write(memory as DataView, 0, 1), TypeError, "as a DataView, got");
  }
});

test("an element lies inside its view", () => {
  const view = new DataView(new ArrayBuffer(8), 0, 6);
  assertEquals(DType.from("int16").read(view, 4), 0);
  assertThrows(
    () => DType.from("int16").read(view, 5),
    RangeError,
    "an element of int16 inside the view of 6 bytes, got byte offset 5",
  );
  assertThrows(() => DType.from("int8x2").write(view, 5, [1, 1]), RangeError, "inside the view");
  assertEquals(view.getUint8(5), 0);
  for (const offset of [-1, 0.5, NaN]) {
    assertThrows(() => DType.from("int8").read(view, offset), RangeError, `got ${offset}`);
  }
});

test("a DLPack type that the standard does not define is refused", () => {
  const bad: [source: { code: number; bits: number; lanes: number; padded?: boolean }, message: string][] = [
    [{ code: 18, bits: 8, lanes: 1 }, "a type code of DLPack 1.3 (0 to 17), got 18"],
    [{ code: 17, bits: 8, lanes: 1 }, "code 17 with 4 bits, got 8"],
    [{ code: 15, bits: 8, lanes: 1 }, "code 15 with 6 bits, got 8"],
    [{ code: 2, bits: 8, lanes: 1 }, "code 2 with 16, 32, 64 bits, got 8"],
    [{ code: 0, bits: 0, lanes: 1 }, "got 0"],
    [{ code: 0, bits: 8, lanes: 0 }, "at least one lane"],
    [{ code: 0, bits: 8, lanes: 65536 }, "up to 65535, got 65536"],
    [{ code: -1, bits: 8, lanes: 1 }, "got -1"],
    [{ code: 2, bits: 32.5, lanes: 1 }, "got 32.5"],
    [{ code: 17, bits: 4, lanes: 2, padded: true }, "to have one lane, got 2"],
  ];
  for (const [source, message] of bad) assertThrows(() => DType.from(source), Error, message);
  // The flag applies only to types of less than a byte.
  assertEquals(DType.from({ code: 2, bits: 32, lanes: 1, padded: true }).name, "float32");
});

test("every name that DLPack's codes can have is known, and no other", () => {
  const codes = new Set(DType.all().map(({ dlpack }) => dlpack.code));
  assertEquals([...codes].sort((left, right) => left - right), Array.from({ length: 18 }, (_, code) => code));
  for (
    const source of ["float", "float32x0", "float32x65536", "complex64x", "int9", "Float32", " float32", "<M8[ns]"]
  ) {
    assertThrows(() => DType.from(source), TypeError);
  }
  for (const source of ["<U5", "<M8", "|V4", "<f16", "|f4", "=O8", "<c4", "<u1_packed"]) {
    assertThrows(() => DType.from(source), TypeError);
  }
  for (const source of ["float32_packed", "int8_packed", "float4_e2m1fnx2_packed", "bool_packed"]) {
    assertThrows(() => DType.from(source), TypeError, "a packed dtype to be below one byte and have one lane");
  }
  assertEquals(DType.from("=f4").name, "float32");
  assertEquals(DType.from("<u1").name, "uint8");
});

test("dtypes asked for twice are the same, and equal only those stored alike", () => {
  assertStrictEquals(DType.from("<f4"), DType.from("float32"));
  assertStrictEquals(DType.from({ code: 2, bits: 32, lanes: 1 }), DType.from("f"));
  assertStrictEquals(DType.from("int8x16"), DType.from("int8x16"));
  // Types that a peer may send in 65535 variants are not cached.
  assertNotStrictEquals(DType.from("int8x17"), DType.from("int8x17"));
  assert(DType.from("int8x17").equals(DType.from("int8x17")));
  assertFalse(DType.from("float32").equals("float32"));
  assertFalse(DType.from("int4").equals(DType.from("int4_packed")));
  assertFalse(DType.from("int8").equals(DType.from("int8x2")));
  assertEquals(`${DType.from("<c16")}`, "complex128");
});

test("elements are aligned to a lane, and to a part of a complex number, as in C", () => {
  const alignments = ["bool", "uint16", "int64", "bfloat16", "complex64", "complex128", "float8_e5m2", "float4_e2m1fn"]
    .map((name) => DType.from(name).alignment);
  assertEquals(alignments, [1, 2, 8, 2, 4, 8, 1, 1]);
  const lanes = ["uint8x3", "float32x3", "float4_e2m1fnx2", "int4_packed", "complex32", "float64x2"];
  assertEquals(lanes.map((name) => DType.from(name).alignment), [1, 4, 1, 1, 2, 8]);
});
