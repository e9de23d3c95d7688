import { assertEquals } from "@std/assert";
import { test } from "node:test";
import type { CScalar, FunctionDescription } from "../../bindings/abi.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { check, fc } from "../support/property.ts";
import { needs } from "../support/needs.ts";
import { runScriptForJson } from "../support/child.ts";
import { compiled, missingCompiler } from "../support/compiled.ts";
import { cTypes, scalars, values } from "./scalars.ts";

type Values = (number | bigint)[];

/** A signature with a value for each parameter and for the result. */
const call = fc.record({
  args: fc.array(fc.constantFrom(...scalars), { maxLength: 14 }),
  returns: fc.constantFrom(...scalars),
}).chain(({ args, returns }) =>
  fc.record({
    args: fc.constant(args),
    returns: fc.constant(returns),
    given: fc.tuple(...args.map((type) => values[type])),
    answer: values[returns],
  })
);

test("whatever C is called with reaches a callback, and its result is returned", () => {
  const port = ffiPort();
  check(
    fc.property(call, ({ args, returns, given, answer }) => {
      const seen: Values[] = [];
      const callback = port.callback({ args, returns }, (...values: Values) => {
        seen.push(values);
        return answer;
      });
      try {
        const description: FunctionDescription = { args, returns };
        const answered = port.functionAt(callback.address, description)?.(...given);
        assertEquals(seen, [given]);
        assertEquals(answered, answer);
      } finally {
        callback.close();
      }
    }),
    400,
  );
});

/** Functions per type that return their argument and its bits, and some that take several or all types. */
const source = `
#include <stdint.h>
#include <stddef.h>
#include <string.h>
${
  scalars.map((type) => `
${cTypes[type]} same_${type}(${cTypes[type]} value) { return value; }
uint64_t bits_${type}(${cTypes[type]} value) { uint64_t bits = 0; memcpy(&bits, &value, sizeof value); return bits; }
`).join("")
}
uint64_t every_one(void *one, void *two, void *three) {
  return (uint64_t)one + 5 * (uint64_t)two + 2 * (uint64_t)three;
}
static uint64_t mix(uint64_t sum, const void *value, size_t size) {
  uint64_t bits = 0;
  memcpy(&bits, value, size);
  return (sum ^ bits) * 0x100000001b3u;
}
uint64_t every(${scalars.map((type) => `${cTypes[type]} ${type}`).join(", ")}, const uint8_t *buffer) {
  uint64_t sum = 0;
${scalars.map((type) => `  sum = mix(sum, &${type}, sizeof ${type});\n`).join("")}
  return mix(sum, buffer, 8);
}
`;

const path = missingCompiler === null ? compiled(source, "libvalues.so") : "";

/** The bits of a value in memory, as C sees them: by a DataView, without the code under test. */
function bitsOf(type: CScalar, value: number | bigint): bigint {
  const view = new DataView(new ArrayBuffer(8));
  if (type === "f32") view.setFloat32(0, Number(value), true);
  else if (type === "f64") view.setFloat64(0, Number(value), true);
  else view.setBigInt64(0, BigInt(value), true);
  const bytes = Number(/\d+/.exec(type)?.[0] ?? 64) / 8;
  return BigInt.asUintN(bytes * 8, view.getBigUint64(0, true));
}

/** Calls the library's function of a type until the runtime compiles the call. @returns the values that were lost */
function callOften(library: string, type: string, given: readonly string[]): Promise<unknown> {
  const script = new URL("./children/hot.ts", import.meta.url);
  return runScriptForJson(script, { isBare: true, args: [library, type], input: JSON.stringify(given) });
}

for (const type of scalars) {
  test(...needs(missingCompiler, `${type} keeps its value and its bits through a bound C function`), () => {
    const { same, bits } = bindValues(type);
    check(
      fc.property(values[type], (value) => {
        assertEquals(same(value), value);
        if (!Number.isNaN(value)) assertEquals(bits(value), bitsOf(type, value)); // a NaN has many bit patterns
      }),
      300,
    );
  });

  test(...needs(missingCompiler, `${type} keeps its value when the call is compiled`), async () => {
    const given = fc.sample(values[type], 100).map((value) => Object.is(value, -0) ? "-0" : String(value));
    assertEquals(await callOften(path, type, given), []);
  });
}

test(...needs(missingCompiler, "a handle is passed exactly, as it is and as the port prepares it"), () => {
  const port = ffiPort();
  const group = {
    same_ptr: { args: ["handle"], returns: "ptr" },
    every_one: { args: ["handle", "ptr", "handle"], returns: "u64" },
  } as const;
  const { same_ptr, every_one } = port.bind(path, libc().loading.dlopen(cString(path), 2), group);
  check(
    fc.property(values.ptr, values.ptr, (first, second) => {
      const [one, other] = [BigInt(first), BigInt(second)];
      assertEquals([same_ptr(one), same_ptr(port.handle(one))], [one, one]);
      assertEquals(BigInt(port.handle(one)), one, "and is restored from it");
      const all = [every_one(one, other, port.handle(one)), every_one(port.handle(one), other, one)];
      assertEquals(all, [BigInt.asUintN(64, 3n * one + 5n * other), BigInt.asUintN(64, 3n * one + 5n * other)]);
    }),
    1000,
  );
});

test(...needs(missingCompiler, "a handle is passed exactly when the call is compiled"), async () => {
  const ordinary = fc.sample(fc.bigInt({ min: 0n, max: 2n ** 47n }), 100); // which compile to one path
  const any = fc.sample(values.ptr, 100); // which compile to two
  for (const given of [ordinary, any]) {
    assertEquals(await callOften(path, "handle", given.map(String)), []);
  }
});

function bindValues(type: CScalar) {
  const group: { readonly [name: string]: FunctionDescription } = {
    [`same_${type}`]: { args: [type], returns: type },
    [`bits_${type}`]: { args: [type], returns: "u64" },
  };
  const functions = ffiPort().bind(path, libc().loading.dlopen(cString(path), 2), group);
  const same = functions[`same_${type}`];
  const bits = functions[`bits_${type}`];
  if (!same || !bits) throw new Error("the library has both functions");
  return { same, bits };
}

test(...needs(missingCompiler, "a bound C function gets every one of 13 arguments"), () => {
  const { every } = ffiPort().bind(path, libc().loading.dlopen(cString(path), 2), {
    every: {
      args: ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64", "size", "ptr", "buffer"],
      returns: "u64",
    },
  });
  const { i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, size, ptr } = values;
  const bytes = fc.uint8Array({ minLength: 8, maxLength: 32 });
  check(
    fc.property(fc.tuple(i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, size, ptr), bytes, (given, buffer) => {
      fc.pre(!given.includes(NaN)); // a NaN may come back with other bits
      let sum = 0n;
      for (const [index, type] of scalars.entries()) {
        sum = BigInt.asUintN(64, (sum ^ bitsOf(type, given[index] ?? 0)) * 0x100000001b3n);
      }
      const word = new DataView(buffer.buffer, buffer.byteOffset).getBigUint64(0, true);
      sum = BigInt.asUintN(64, (sum ^ word) * 0x100000001b3n);
      assertEquals((every as (...args: unknown[]) => bigint)(...given, new Uint8Array(buffer)), sum);
    }),
    2000,
  );
});

test("real functions of the C library: numbers", () => {
  const { abs, labs, toupper, ntohs, ntohl, ldexp, copysignf } = ffiPort().bind("libc.so.6", 0n, {
    abs: { args: ["i32"], returns: "i32" },
    labs: { args: ["i64"], returns: "i64" },
    toupper: { args: ["i32"], returns: "i32" },
    ntohs: { args: ["u16"], returns: "u16" },
    ntohl: { args: ["u32"], returns: "u32" },
    ldexp: { args: ["f64", "i32"], returns: "f64" },
    copysignf: { args: ["f32", "f32"], returns: "f32" },
  });
  assertEquals([abs(-5), abs(-(2 ** 31) + 1)], [5, 2 ** 31 - 1]);
  assertEquals([labs(-5n), labs(-(2n ** 63n) + 1n)], [5n, 2n ** 63n - 1n]);
  assertEquals(toupper(0x61), 0x41);
  assertEquals([ntohs(0x1234), ntohs(0x00ff)], [0x3412, 0xff00]);
  assertEquals([ntohl(0x1234_5678), ntohl(0x0000_00ff)], [0x7856_3412, 0xff00_0000]);
  assertEquals([ldexp(1.5, 3), ldexp(-0, 1), ldexp(Infinity, 1)], [12, -0, Infinity]);
  assertEquals([copysignf(1.5, -0), copysignf(0, -1)], [-1.5, -0]);
});

test("real functions of the C library: a buffer is JavaScript's own memory", () => {
  const { memcmp, memcpy, strnlen } = ffiPort().bind("libc.so.6", 0n, {
    memcmp: { args: ["buffer", "buffer", "size"], returns: "i32" },
    memcpy: { args: ["buffer", "buffer", "size"], returns: "ptr" },
    strnlen: { args: ["buffer", "size"], returns: "size" },
  });
  check(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 5000 }), fc.nat(20), (bytes, skipped) => {
      const source = new Uint8Array(bytes);
      const large = new Uint8Array(new ArrayBuffer(source.length + skipped + 3)); // a view that starts inside
      const target = large.subarray(skipped, skipped + source.length);
      memcpy(target, source, BigInt(source.length));
      assertEquals(target, source);
      assertEquals(memcmp(target, source, BigInt(source.length)), 0);
      assertEquals(large.subarray(skipped + source.length), new Uint8Array(3));
      const zero = source.indexOf(0);
      assertEquals(strnlen(source, BigInt(source.length)), BigInt(zero < 0 ? source.length : zero));
    }),
    200,
  );
});

test("a buffer argument may be null", () => {
  const { time } = ffiPort().bind("libc.so.6", 0n, { time: { args: ["buffer"], returns: "i64" } });
  assertEquals(Math.abs(Number(time(null)) - Date.now() / 1000) < 5, true);
});

test("C calls a callback many times", () => {
  const port = ffiPort();
  const { qsort } = port.bind("libc.so.6", 0n, { qsort: { args: ["buffer", "size", "size", "ptr"], returns: "void" } });
  const view = (address: bigint) => new Int32Array(port.memory(address, 4))[0] ?? 0;
  const compare = port.callback({ args: ["ptr", "ptr"], returns: "i32" }, (a, b) => Math.sign(view(a) - view(b)));
  check(
    fc.property(fc.array(fc.integer({ min: -(2 ** 30), max: 2 ** 30 }), { minLength: 1, maxLength: 50 }), (numbers) => {
      const bytes = new Uint8Array(Int32Array.from(numbers).buffer);
      qsort(bytes, BigInt(numbers.length), 4n, compare.address);
      assertEquals([...new Int32Array(bytes.buffer)], numbers.toSorted((a, b) => a - b));
    }),
    50,
  );
  compare.close();
});
