/** Dtype names as types are exactly those that exist, and determine the elements: most of this is for the compiler. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import {
  type Complex,
  DType,
  type DTypeName,
  type DTypeNameOfArray,
  type ElementOf,
  type ScalarName,
  type SubByteName,
  type TypedArrayOf,
  type WritableOf,
} from "../../src/layout/mod.ts";
import { check, fc } from "../support/property.ts";

/** Does not compile unless two types are identical. */
function same<A, B>(..._: (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? [] : [never]): void {}

/** Every name of the union and no other: otherwise this does not compile. */
const names: Readonly<Record<ScalarName | `${SubByteName}_packed`, true>> = {
  ...{ int1: true, int2: true, int3: true, int4: true, int5: true, int6: true, int7: true, int8: true },
  ...{ int16: true, int32: true, int64: true },
  ...{ uint1: true, uint2: true, uint3: true, uint4: true, uint5: true, uint6: true, uint7: true, uint8: true },
  ...{ uint16: true, uint32: true, uint64: true },
  ...{ int1_packed: true, int2_packed: true, int3_packed: true, int4_packed: true, int5_packed: true },
  ...{ int6_packed: true, int7_packed: true },
  ...{ uint1_packed: true, uint2_packed: true, uint3_packed: true, uint4_packed: true, uint5_packed: true },
  ...{ uint6_packed: true, uint7_packed: true },
  ...{ float16: true, float32: true, float64: true, bfloat16: true, handle64: true, bool: true, bool1: true },
  ...{ bool1_packed: true, complex32: true, complex64: true, complex128: true },
  ...{ float8_e3m4: true, float8_e4m3: true, float8_e4m3b11fnuz: true, float8_e4m3fn: true, float8_e4m3fnuz: true },
  ...{ float8_e5m2: true, float8_e5m2fnuz: true, float8_e8m0fnu: true },
  ...{ float6_e2m3fn: true, float6_e3m2fn: true, float4_e2m1fn: true },
  ...{ float6_e2m3fn_packed: true, float6_e3m2fn_packed: true, float4_e2m1fn_packed: true },
};

test("the names in the type are those of all dtypes", () => {
  assertEquals(Object.keys(names).toSorted(), DType.all().map(({ name }) => name).toSorted());
});

test("a dtype is known by its name to the compiler, as far as the program says it", () => {
  same<(typeof float32)["name"], "float32">();
  const float32 = DType.from("float32");
  assertEquals(float32.name, "float32");
  const text = String("<f4");
  const unknown = DType.from(text);
  same<(typeof unknown)["name"], DTypeName>();
  assertEquals(unknown, float32);
  const widened: DType = float32; // a less specific dtype
  // @ts-expect-error -- more specific
  const narrowed: DType<"float64"> = widened;
  assertEquals(narrowed, widened);
  // @ts-expect-error -- another dtype
  const other: DType<"float64"> = DType.from("float32");
  assertEquals(other.name as string, "float32");
});

test("the type of the elements follows from the name", () => {
  same<ElementOf<"float32">, number>();
  same<ElementOf<"int64" | "handle64">, bigint>();
  same<ElementOf<"bool" | "bool1_packed">, boolean>();
  same<ElementOf<"complex64">, Complex>();
  same<ElementOf<"float32x4">, readonly number[]>();
  same<WritableOf<"uint64">, bigint | number>();
  same<WritableOf<"int32">, number>();
  same<TypedArrayOf<"float32">, Float32Array<ArrayBuffer>>();
  same<TypedArrayOf<"complex128">, Float64Array<ArrayBuffer>>();
  same<TypedArrayOf<"uint8x4">, Uint8Array<ArrayBuffer>>();
  same<TypedArrayOf<"bfloat16">, never>();
  same<DTypeNameOfArray<Uint8ClampedArray>, "uint8">();
  same<DTypeNameOfArray<BigUint64Array>, "uint64">();
  same<DTypeNameOfArray<Float16Array>, "float16">();
  const arrays = [new Int8Array(1), new Float32Array(1), new BigInt64Array(1), new Float64Array(1)] as const;
  assertEquals(arrays.map((one) => DType.fromTypedArray(one).name), ["int8", "float32", "int64", "float64"]);
});

test("the class of typed array of each dtype is the one in the type", () => {
  const classes = {
    int8: Int8Array,
    bool: Uint8Array,
    uint16: Uint16Array,
    int64: BigInt64Array,
    handle64: BigUint64Array,
    complex32: Float16Array,
    float32x2: Float32Array,
    complex128: Float64Array,
  } satisfies { [D in DTypeName]?: new (length: number) => TypedArrayOf<D> };
  for (const [name, type] of Object.entries(classes)) assertEquals(DType.from(name).typedArray, type, name);
});

/** Whether one becomes the other by inserting, deleting, replacing or swapping at most so many letters, by search. */
function isWithin(most: number, one: string, other: string): boolean {
  if (one === "" || other === "") return one.length + other.length <= most;
  if (one[0] === other[0]) return isWithin(most, one.slice(1), other.slice(1));
  return most > 0 && (
    isWithin(most - 1, one.slice(1), other) ||
    isWithin(most - 1, one, other.slice(1)) ||
    isWithin(most - 1, one.slice(1), other.slice(1)) ||
    (one[0] === other[1] && one[1] === other[0] && isWithin(most - 1, one.slice(2), other.slice(2)))
  );
}

/** The name that the error for an unknown name suggests. */
function meant(name: string): string | null {
  const { message } = assertThrows(() => DType.from(name), TypeError);
  return /Did you mean "(?<name>.*?)"\?/.exec(message)?.groups?.["name"] ?? null;
}

test("the error for a name with one or two wrong letters suggests the nearest one, and with more none", () => {
  const all = DType.all().map(({ name }) => name as string).filter((name) => !name.endsWith("_packed"));
  const letter = fc.constantFrom(..."abcfilnotu0123456789_");
  const edits = fc.array(fc.record({ at: fc.nat(20), letter, how: fc.constantFrom("in", "out", "other") }), {
    minLength: 1,
    maxLength: 3,
  });
  check(
    fc.property(fc.constantFrom(...all), edits, (name, edits) => {
      let wrong = name;
      for (const { at, letter, how } of edits) {
        const place = at % (wrong.length + 1);
        wrong = wrong.slice(0, place) + (how === "out" ? "" : letter) + wrong.slice(place + (how === "in" ? 0 : 1));
      }
      // Other spellings of dtypes, and words of other languages, are out of scope here.
      fc.pre(wrong.length > 4 && !all.includes(wrong) && !["float", "short"].includes(wrong));
      const found = meant(wrong);
      const fewest = [1, 2].find((most) => all.some((name) => isWithin(most, wrong, name))) ?? null;
      if (fewest === null) assertEquals(found, null, wrong);
      else assert(found !== null && isWithin(fewest, wrong, found), `${wrong}: ${found}`);
    }),
    500,
  );
  assertEquals(["double", "float", "int", "Half", "boolean"].map(meant), [
    "float64",
    "float32",
    "int32",
    "float16",
    "bool",
  ]);
  assertEquals(["f4", "i8", "u1", "b1"].map(meant), ["<f4", "<i8", "|u1", "|b1"]);
  assertEquals(["f32", "bf16", "i64", "u16"].map(meant), ["float32", "bfloat16", "int64", "uint16"]);
  assertEquals(["object", "datetime64[ns]", ""].map(meant), [null, null, null]);
  assertEquals(["int9", "uint12"].map(meant), ["int8", "uint16"]);
  // Names that are near none get the whole list.
  assertThrows(() => DType.from("object"), TypeError, "The names are ");
  assertThrows(
    () => DType.from("float8"),
    TypeError,
    "Similar names are float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, ",
  );
  assertEquals(assertThrows(() => DType.from("int9"), TypeError).message.length < 120, true);
});
