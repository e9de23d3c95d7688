/** A C function receives structs by value as the compiler expects, at any position among its parameters. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import type { Argument } from "../../bindings/abi.ts";
import { lowerStructs } from "../../src/ffi/struct_by_value.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { libc } from "../../src/ffi/libc.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { compiled, missingCompiler } from "../support/compiled.ts";

/** Parameters: their type in C, their size, and how to read their value from bytes. */
const kinds = {
  u8: ["unsigned char", 1, (view: DataView) => view.getUint8(0)],
  i32: ["int", 4, (view: DataView) => view.getInt32(0, true)],
  u32: ["unsigned int", 4, (view: DataView) => view.getUint32(0, true)],
  i64: ["long", 8, (view: DataView) => view.getBigInt64(0, true)],
  u64: ["unsigned long", 8, (view: DataView) => view.getBigUint64(0, true)],
  ptr: ["void *", 8, (view: DataView) => view.getBigUint64(0, true)],
  f32: ["float", 4, (view: DataView) => view.getFloat32(0, true)],
  f64: ["double", 8, (view: DataView) => view.getFloat64(0, true)],
  struct64: ["struct handle", 64, (view: DataView) => new Uint8Array(view.buffer.slice(0, 64) as ArrayBuffer)],
} as const;

interface Parameter {
  readonly type: keyof typeof kinds;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

const parameter: fc.Arbitrary<Parameter> = fc.record({
  type: fc.constantFrom(...Object.keys(kinds) as (keyof typeof kinds)[], "struct64" as const),
  // No bytes that could form a NaN, which not every machine copies unchanged.
  bytes: fc.uint8Array({ minLength: 64, maxLength: 64, max: 0x7e }).map((bytes) => new Uint8Array(bytes)),
});

/** What both runtimes can pass: 32 words in Bun, eight floating-point registers on x86-64. */
const signature = fc.array(parameter, { minLength: 1, maxLength: 14 }).filter((parameters) => {
  const count = (prefix: string) => parameters.filter(({ type }) => type.startsWith(prefix)).length;
  return count("f") <= 8 && count("struct") <= 2;
});

/** A function that records the bytes of all its parameters in sequence, and returns their number. */
function sourceOf(parameters: readonly Parameter[], name: string): string {
  const list = parameters.map(({ type }, i) => `${kinds[type][0]} p${i}`).join(", ");
  const notes = parameters.map((_, i) => `memcpy(noted + at, &p${i}, sizeof p${i}); at += sizeof p${i};`).join(" ");
  return `int ${name}(${list}) { int at = 0; ${notes} return at; }`;
}

test(...needs(missingCompiler, "structs arrive by value among any other parameters"), () => {
  let libraries = 0;
  check(
    fc.property(fc.array(signature, { minLength: 25, maxLength: 25 }), (signatures) => {
      const functions = signatures.map((parameters, i) => sourceOf(parameters, `f${i}`));
      const header = "#include <string.h>\nstruct handle { char reserved[64]; };\nchar noted[4096];";
      const path = compiled([header, ...functions].join("\n"), `libbyvalue${libraries++}.so`);
      const handle = libc().loading.dlopen(cString(path), 2);
      assert(handle !== 0n);
      const noted = new Uint8Array(ffiPort().memory(libc().loading.dlsym(handle, cString("noted")), 4096));
      const group = Object.fromEntries(
        signatures.map((list, i) => [`f${i}`, { args: list.map(({ type }) => type), returns: "i32" }] as const),
      );
      const bound: Record<string, unknown> = ffiPort().bind(path, handle, group);
      for (const [i, parameters] of signatures.entries()) {
        const values = parameters.map(({ type, bytes }) => kinds[type][2](new DataView(bytes.buffer)));
        const expected = parameters.flatMap(({ type, bytes }) => [...bytes.subarray(0, kinds[type][1])]);
        const description = { args: parameters.map(({ type }) => type), returns: "i32" } as const;
        const byName = bound[`f${i}`] as (...values: unknown[]) => number;
        const byAddress = ffiPort().functionAt(libc().loading.dlsym(handle, cString(`f${i}`)), description) as (
          ...values: unknown[]
        ) => number;
        for (const call of [byName, byAddress]) {
          noted.fill(0xff);
          assertEquals(call(...values), expected.length);
          assertEquals([...noted.subarray(0, expected.length)], expected, parameters.map(({ type }) => type).join());
        }
      }
    }),
    4,
  );
});

test(...needs(missingCompiler, "a callee that changes its copy changes nothing of the caller's"), () => {
  const source = `struct handle { char reserved[64]; };
int spoil(struct handle h, int x) { int sum = 0;
  for (int i = 0; i < 64; i++) { sum += h.reserved[i]; ((volatile char *)h.reserved)[i] = 9; }
  return sum + x; }`;
  const { functions } = openLibrary({
    name: "libspoil",
    symbols: { all: { spoil: { args: ["struct64", "i32"], returns: "i32" } } } as const,
    override: "CAUSEWAY_LIBSPOIL",
    sonames: [compiled(source, "libspoil.so")],
    remedy: "",
  });
  const bytes = new Uint8Array(64).fill(1);
  assertEquals(functions.all.spoil(bytes, 5), 69);
  assertEquals(bytes, new Uint8Array(64).fill(1));
  for (const wrong of [new Uint8Array(63), new Uint8Array(65), new Uint8Array(0)]) {
    assertThrows(
      () => functions.all.spoil(wrong, 5),
      TypeError,
      `expected a Uint8Array of 64 bytes, got ${wrong.length}`,
    );
  }
  const nothing = null as unknown as Uint8Array<ArrayBuffer>;
  assertThrows(() => functions.all.spoil(nothing, 5), TypeError, "got object");
});

test("more words than Bun can pass are refused when they are bound", () => {
  const description = { args: new Array<Argument>(4).fill("struct64"), returns: "i32" } as const;
  const bind = () => ffiPort().functionAt(4096n, description);
  const isCopied = process.arch === "x64"; // on arm64 each is one word, its address
  if (ffiPort().runtime.name === "bun" && isCopied) assertThrows(bind, FfiError, "38 words: Bun passes at most 32");
  else bind();
});

test("on arm64 the address of a copy is passed; where the convention is not known, nothing", () => {
  const args: readonly Argument[] = ["ptr", "struct64", "u32"];
  const lowered = lowerStructs(args, "aarch64");
  assertEquals(lowered.args, ["ptr", "buffer", "u32"]);
  const bytes = new Uint8Array(64).fill(3);
  const [pointer, copy, flags] = lowered.values([1n, bytes, 7]);
  assertEquals([pointer, flags], [1n, 7]);
  assert(copy instanceof Uint8Array && copy !== bytes && copy.buffer !== bytes.buffer);
  assertEquals(copy, bytes);
  assertThrows(() => lowerStructs(args, "other"), FfiError, "expected x86-64 or arm64");
  const floats = new Array<Argument>(9).fill("f64");
  assertThrows(() => lowerStructs(["struct64", ...floats], "x86_64"), FfiError, "9 floating-point numbers");
});
