/**
 * The dtype that the compiler infers for a view is the one it has at run time, never more specific. Most of this is for
 * the compiler.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  type Complex,
  Cuda,
  DType,
  type DTypeLike,
  type DTypeName,
  type KernelArg,
  MemoryBuffer,
  readNpy,
  StridedMemoryView,
  type UcxEndpoint,
  type UcxWorker,
} from "../../mod.ts";
import type { ElementOf, ElementValue } from "../../src/public/layout.ts";
import type { CreateOptions, ElementArray } from "../../src/public/view.ts";
import { check, fc } from "../support/property.ts";

/** Does not compile unless two types are identical. */
function same<A, B>(..._: (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? [] : [never]): void {}

/** The dtype of a view, both to the compiler and at run time. */
const named = <N extends DTypeName>(view: StridedMemoryView<N>): N => view.dtype.name;

const text = (value: string): string => value;

test("a dtype that is not given is not inferred from the type that the view is assigned to", () => {
  const doubles = StridedMemoryView.zeros([2]);
  // @ts-expect-error -- float64
  const zeros: StridedMemoryView<"float32"> = StridedMemoryView.zeros([2]);
  // @ts-expect-error -- float64
  const placed: StridedMemoryView<"float32"> = StridedMemoryView.zeros([2], { device: "host" });
  // @ts-expect-error -- float64
  const full: StridedMemoryView<"uint8"> = StridedMemoryView.full([2], 3);
  // @ts-expect-error -- float64
  const array: StridedMemoryView<"int32"> = StridedMemoryView.fromArray([1, 2]);
  // @ts-expect-error -- float64
  const range: StridedMemoryView<"int32"> = StridedMemoryView.arange(3);
  // @ts-expect-error -- float64
  const between: StridedMemoryView<"int32"> = StridedMemoryView.arange(0, 3, 1, { device: "host" });
  // @ts-expect-error -- float64
  const copied: StridedMemoryView<"int8"> = doubles.copy();
  // @ts-expect-error -- float64
  const ordered: StridedMemoryView<"int8"> = doubles.copy({ order: "F" });
  // @ts-expect-error -- float64
  const laid: StridedMemoryView<"int64"> = doubles.view({ layout: doubles.layout });
  // @ts-expect-error -- float64
  const there: StridedMemoryView<"int8"> = doubles.to("host");
  // @ts-expect-error -- float64
  const contiguous: StridedMemoryView<"int8"> = doubles.contiguous();
  // @ts-expect-error -- int64
  const bigints: StridedMemoryView<"uint64"> = StridedMemoryView.arange(3n);
  // @ts-expect-error -- uint8
  const viewed: StridedMemoryView<"int8"> = StridedMemoryView.from(new Uint8Array(2));
  // @ts-expect-error -- not known for an arbitrary source
  const any: StridedMemoryView<"int8"> = StridedMemoryView.from(doubles as unknown);
  // @ts-expect-error -- the given dtype, not the assigned one
  const given: StridedMemoryView<"int8"> = StridedMemoryView.zeros([2], "uint8");
  // @ts-expect-error -- nor from options
  const options: StridedMemoryView<"int8"> = StridedMemoryView.zeros([2], { dtype: "uint8" });
  // @ts-expect-error -- nor from explicit type arguments
  assertEquals(named(StridedMemoryView.zeros<"float32">([2])) as string, "float64");
  const made = [zeros, placed, full, array, range, between, copied, ordered, laid, there, contiguous, bigints, viewed];
  assertEquals([...made, any, given, options].map((view) => view.dtype.name as string), [
    ...Array.from({ length: 11 }, () => "float64"),
    ...["int64", "uint8", "float64", "uint8", "uint8"],
  ]);
});

test("a dtype is known if it is given, alone or in options, or if the values determine it", () => {
  const ints = StridedMemoryView.zeros([2], "int32");
  const known = {
    zeros: StridedMemoryView.zeros([2]),
    full: StridedMemoryView.full([2], 3),
    numbers: StridedMemoryView.fromArray([[1, 2], [3, 4]]),
    nothing: StridedMemoryView.fromArray([]),
    range: StridedMemoryView.arange(1, 3),
  };
  for (const view of Object.values(known)) {
    same<typeof view, StridedMemoryView<"float64">>();
    assertEquals(named(view), "float64");
  }
  const as = {
    zeros: StridedMemoryView.zeros([2], "int32"),
    full: StridedMemoryView.full([2], 3, { dtype: "int32" }),
    array: StridedMemoryView.fromArray([1, 2], { dtype: DType.from("int32"), device: "host" }),
    bigints: StridedMemoryView.fromArray([1n, 2n].map(Number), "int32"),
    range: StridedMemoryView.arange(3, "int32"),
    rangeOf: StridedMemoryView.arange(0, 3, 1, { dtype: "int32" }),
    copy: known.zeros.copy({ dtype: "int32" }),
    same: ints.copy(),
    to: ints.to("host"),
    contiguous: ints.contiguous(),
    view: StridedMemoryView.zeros([2], "uint8x4").view("int32"),
    viewBy: StridedMemoryView.zeros([2], "float32").view({ dtype: "int32" }),
    laid: ints.view({ layout: ints.layout }),
    typed: StridedMemoryView.fromArray(Int32Array.of(1)),
    rows: StridedMemoryView.fromArray([Int32Array.of(1), Int32Array.of(2)]),
    buffer: StridedMemoryView.fromBuffer(ints.buffer, { shape: [2], dtype: "int32" }),
  };
  for (const view of Object.values(as)) {
    same<typeof view, StridedMemoryView<"int32">>();
    assertEquals(named(view), "int32");
  }
  const others = [
    StridedMemoryView.fromArray([1n, -2n]),
    StridedMemoryView.fromArray([true, false]),
    StridedMemoryView.fromArray([{ re: 1, im: 2 }]),
    StridedMemoryView.arange(2n),
    StridedMemoryView.full([1], false),
  ] as const;
  same<
    typeof others,
    readonly [
      StridedMemoryView<"int64">,
      StridedMemoryView<"bool">,
      StridedMemoryView<"complex128">,
      StridedMemoryView<"int64">,
      StridedMemoryView<"bool">,
    ]
  >();
  assertEquals(others.map(({ dtype }) => dtype.name), ["int64", "bool", "complex128", "int64", "bool"]);
});

test("a dtype known only at run time gives a view of any dtype", () => {
  const maybe = (dtype?: "float32") => StridedMemoryView.zeros([1], dtype);
  const wide = (options?: CreateOptions) => StridedMemoryView.arange(1, options);
  const narrow = (options: CreateOptions<"float32">) => StridedMemoryView.fromArray([1], options);
  const like = (dtype: DTypeLike) => StridedMemoryView.full([1], 1, dtype);
  const parsed = StridedMemoryView.zeros([1], DType.from(text("<f4")));
  const mixed = StridedMemoryView.fromArray([[1], Float32Array.of(1)]);
  const views = [maybe(), maybe("float32"), wide(), narrow({}), like("int8"), parsed, mixed];
  same<typeof views, StridedMemoryView[]>();
  assertEquals(
    views.map(({ dtype }) => dtype.name),
    ["float64", "float32", "float64", "float64", "int8", "float32", "float64"],
  );
});

test("an unknown dtype name does not compile, nor one of another convention, nor a misspelled option", () => {
  const buffer = MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8), 0, 8);
  const view = StridedMemoryView.zeros([1]);
  const wrong = [
    // @ts-expect-error -- no dtype
    () => StridedMemoryView.zeros([2], "flot32"),
    // @ts-expect-error -- no dtype
    () => StridedMemoryView.zeros([2], { dtype: "flot32" }),
    // @ts-expect-error -- no dtype
    () => StridedMemoryView.full([2], 1, "int9"),
    // @ts-expect-error -- no dtype
    () => StridedMemoryView.fromArray([1], "f4"),
    // @ts-expect-error -- no dtype
    () => StridedMemoryView.arange(3, "double"),
    // @ts-expect-error -- no dtype
    () => StridedMemoryView.fromBuffer(buffer, { shape: [1], dtype: "flot32" }),
    // @ts-expect-error -- no dtype
    () => view.view("uint7x"),
    // @ts-expect-error -- no dtype
    () => view.view({ dtype: "unit8" }),
    // @ts-expect-error -- no dtype
    () => view.copy({ dtype: "flot32" }),
    // @ts-expect-error -- no dtype
    () => view.hasDType("flot32"),
    // @ts-expect-error -- no option
    () => StridedMemoryView.zeros([2], { dtyp: "float32" }),
    // @ts-expect-error -- no option
    () => StridedMemoryView.zeros([2], { dtype: "float32", devise: "host" }),
    // @ts-expect-error -- no option
    () => view.copy({ ordre: "F" }),
    // @ts-expect-error -- a string that the compiler does not know: DType.from(text) makes a dtype of it
    () => StridedMemoryView.zeros([2], text("float33")),
  ];
  for (const ask of wrong) assertThrows(ask, TypeError);
  using cuda = Cuda.simulate();
  const kernel = cuda.device(0).loadPtx(
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u32 n) { ret; }",
  )
    .kernel("f");
  // @ts-expect-error -- no dtype
  assertThrows(() => kernel.launch(cuda.device(0).defaultStream, 1, 1, [["unit32", 1]]), TypeError, "Expected a dtype");
});

test("hasDType narrows the type, and returns what dtype.equals does", async () => {
  const names = DType.all().map(({ name }) => name);
  check(
    fc.property(fc.constantFrom(...names), fc.constantFrom(...names), (name, other) => {
      const view = StridedMemoryView.zeros([8], name);
      assertEquals(view.hasDType(other), name === other);
      assertEquals(view.hasDType(DType.from(other)), name === other);
      assert(view.hasDType(name) && view.sliced(0).hasDType(view.dtype));
    }),
    100,
  );
  using file = await readNpy(fileURLToPath(new URL("../../examples/digits.npy", import.meta.url)));
  if (file.hasDType("float64")) throw new Error("not this one");
  else if (file.hasDType("uint8")) {
    same<typeof file, StridedMemoryView<"uint8">>();
    const bytes: Uint8Array = file.asTypedArray();
    assertEquals(bytes[2], 5);
  } else throw new Error("this one");
  const part: ElementArray = file;
  if (part.hasDType("uint8")) assertEquals(part.get(0, 0, 2) satisfies number, 5);
  // Where the compiler does not know which dtype it is, it learns nothing in the negative case either.
  const wanted: DTypeName = DType.from(text("int8")).name;
  if (!file.hasDType(wanted)) assertEquals(file.dtype.name, "uint8");
  const either = text("int8") === "int8" ? "int8" : "int16";
  if (!file.hasDType(either)) assertEquals(file.dtype.name, "uint8");
  if (!file.hasDType(DType.from(text("int8")))) assertEquals(file.dtype.name, "uint8");
  assertThrows(() => file.hasDType("flot32" as "float32"), TypeError, 'Did you mean "float32"?');
});

test("elements have the type of the dtype, for views, dtypes and leases", async () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const memory = new DataView(new ArrayBuffer(16));
  const numbers = StridedMemoryView.zeros([2], "float32");
  const complex = StridedMemoryView.zeros([2], "complex64x2"); // whose lanes were taken for those of "comple"
  const one = StridedMemoryView.zeros([2], "float32x1");
  const longs = StridedMemoryView.zeros([2], "int64x2");
  same<ElementOf<"complex64x2">, readonly Complex[]>();
  same<ElementOf<"int8x1">, number>();
  same<ElementOf<DTypeName>, ElementValue>();
  const pair: readonly Complex[] = complex.get(0);
  const scalar: number = one.get(0);
  const bigints: readonly bigint[] = longs.get(0);
  longs.set([1, 2n], 0);
  complex.set([1, { re: 0, im: 2 }], 1);
  assertEquals(complex.get(1), [{ re: 1, im: 0 }, { re: 0, im: 2 }]);
  // @ts-expect-error -- a boolean
  assertThrows(() => complex.set([true, 2], 0), TypeError, "Expected { re, im } or a number for complex64, got true");
  // @ts-expect-error -- several numbers
  assertThrows(() => one.set([1], 0), TypeError, "Expected one value for float32");
  const floats: Float32Array = complex.asTypedArray();
  assertEquals([pair, scalar, bigints, floats.length], [[{ re: 0, im: 0 }, { re: 0, im: 0 }], 0, [0n, 0n], 8]);

  const read: number = DType.from("float32").read(memory, 0);
  const flag: boolean = DType.from("bool").read(memory, 0);
  // @ts-expect-error -- a bigint
  assertThrows(() => DType.from("float32").write(memory, 0, 1n), TypeError, "Expected a number for float32");
  DType.from("int64").write(memory, 0, 1);
  assertEquals([read, flag], [0, false]);
  // A dtype that is known only at run time takes anything, and refuses it then.
  const any: DType = DType.from("float32");
  assertThrows(() => any.write(memory, 0, [1, true]), TypeError);

  using there = StridedMemoryView.zeros([2], { dtype: "float32", device });
  using stream = device.createStream();
  using lease = there.borrow(stream);
  const copied: Float32Array = await lease.view.toTypedArray();
  assertEquals(copied.length, 2);

  // A function of any dtype writes what it has read.
  const swap = <D extends DTypeName>(view: StridedMemoryView<D>) => view.set(view.get(0), 1);
  numbers.set(5, 0);
  swap(numbers);
  assertEquals(numbers.toArray(), [5, 5]);
});

test("the parts of a message are bytes", () => {
  type Parts = Awaited<ReturnType<UcxEndpoint["recvMany"]>>;
  same<Parts[number], StridedMemoryView<"uint8">>();
  same<Awaited<ReturnType<UcxWorker["recvMany"]>>, Parts>();
});

test("a kernel's argument has a value that fits its type", () => {
  const fits: KernelArg[] = [
    ["float32", 1],
    ["int64", 1n],
    ["int64", 1],
    ["bool", true],
    ["complex64", { re: 1, im: 2 }],
    ["complex64", 1],
    ["float32x4", [1, 2, 3, 4]],
    [DType.from("<f4"), 1],
  ];
  assertEquals(fits.length, 8);
  // @ts-expect-error -- one lane
  const lane: KernelArg = ["float32x4", 1];
  // @ts-expect-error -- a boolean
  const flag: KernelArg = ["float32", true];
  // @ts-expect-error -- packed elements are no values
  const packed: KernelArg = ["int4_packed", 1];
  assertEquals([lane, flag, packed].length, 3);
});
