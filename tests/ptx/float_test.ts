/**
 * Floating-point instructions: each result is the exact value, rounded, and special values follow the specification.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { check, fc } from "../support/property.ts";
import { type Compare, type Format, formats, fraction, isRounded, read, root, toNumber } from "./exact.ts";
import { anyBits, type Case, execute } from "../support/ptx/instruction.ts";

type Name = keyof typeof formats;

/** Bits of floats: zeros, infinities, NaN, 1, and their neighbours. */
function anyEdge(name: Name): fc.Arbitrary<bigint> {
  const { bits, fractionBits } = formats[name];
  const one = ((1n << BigInt(bits - 2 - fractionBits)) - 1n) << BigInt(fractionBits);
  const sign = 1n << BigInt(bits - 1);
  const infinity = ((1n << BigInt(bits - 1 - fractionBits)) - 1n) << BigInt(fractionBits);
  const edges = [0n, 1n, 2n, (1n << BigInt(fractionBits)) - 1n, 1n << BigInt(fractionBits), one, one + 1n, one - 1n];
  edges.push(infinity, infinity - 1n, infinity + 1n, infinity + (1n << BigInt(fractionBits - 1)));
  return fc.constantFrom(...edges, ...edges.map((edge) => edge | sign));
}

/** Bits of floats: arbitrary, edge values, and numbers close to each other. */
function anyFloat(name: Name): fc.Arbitrary<bigint> {
  const { bits, fractionBits } = formats[name];
  const one = ((1n << BigInt(bits - 2 - fractionBits)) - 1n) << BigInt(fractionBits);
  const sign = 1n << BigInt(bits - 1);
  return fc.oneof(
    anyBits(bits),
    anyEdge(name),
    fc.tuple(fc.bigInt({ min: -4n, max: 4n }), anyBits(fractionBits), fc.boolean()).map(([exponent, low, negative]) =>
      (one + (exponent << BigInt(fractionBits)) + BigInt.asUintN(fractionBits, low)) | (negative ? sign : 0n)
    ),
  );
}

function anyCases(name: Name): fc.Arbitrary<Case[]> {
  const { bits, fractionBits } = formats[name];
  const one = anyFloat(name);
  // The largest eight powers of two: a product of two overflows.
  const largest = (((1n << BigInt(bits - 1 - fractionBits)) - 1n) << BigInt(fractionBits)) - 1n;
  const huge = fc.tuple(anyBits(fractionBits + 3), fc.boolean()).map(([less, negative]) =>
    largest - less + (negative ? 1n << BigInt(bits - 1) : 0n)
  );
  const some = fc.oneof(
    { weight: 3, arbitrary: fc.tuple(one, one, one) },
    { weight: 1, arbitrary: fc.tuple(huge, huge, anyEdge(name)) },
  );
  return fc.array(some, { minLength: 1, maxLength: 150, size: "max" });
}

const canonicalNan: Readonly<Record<Name, bigint>> = {
  f16: 0x7fffn,
  bf16: 0x7fffn,
  f32: 0x7fffffffn,
  f64: 0xfff8000000000000n,
};

/** An operation, in doubles for special operands and signs of zeros, and exactly. */
interface Operation {
  readonly special: (a: number, b: number, c: number) => number;
  /** The exact value, or null if it is zero. */
  readonly exact: (a: bigint[], b: bigint[], c: bigint[]) => { negative: boolean; compare: Compare } | null;
  readonly operands: number;
}

function rational(n: bigint, d: bigint): { negative: boolean; compare: Compare } | null {
  return n === 0n ? null : { negative: (n < 0n) !== (d < 0n), compare: fraction(n, d) };
}

const operations: Readonly<Record<string, Operation>> = {
  add: {
    operands: 2,
    special: (a, b) => a + b,
    exact: ([n = 0n, d = 1n], [m = 0n, e = 1n]) => rational(n * e + m * d, d * e),
  },
  sub: {
    operands: 2,
    special: (a, b) => a - b,
    exact: ([n = 0n, d = 1n], [m = 0n, e = 1n]) => rational(n * e - m * d, d * e),
  },
  mul: { operands: 2, special: (a, b) => a * b, exact: ([n = 0n, d = 1n], [m = 0n, e = 1n]) => rational(n * m, d * e) },
  div: { operands: 2, special: (a, b) => a / b, exact: ([n = 0n, d = 1n], [m = 0n, e = 1n]) => rational(n * e, d * m) },
  rcp: { operands: 1, special: (a) => 1 / a, exact: ([n = 0n, d = 1n]) => rational(d, n) },
  sqrt: {
    operands: 1,
    special: Math.sqrt,
    exact: ([n = 0n, d = 1n]) => n === 0n ? null : { negative: false, compare: root(n, d) },
  },
  fma: {
    operands: 3,
    // The product of finite factors is finite even if it overflows doubles: an H200 adds the opposite infinity to it.
    special: (a, b, c) => Number.isFinite(a) && Number.isFinite(b) && !Number.isFinite(c) ? c : a * b + c,
    exact: ([n = 0n, d = 1n], [m = 0n, e = 1n], [o = 0n, f = 1n]) => rational(n * m * f + o * d * e, d * e * f),
  },
};

/** Checks one result. */
function verify(name: Name, operation: string, mode: string, operands: readonly bigint[], result: bigint): void {
  const format: Format = formats[name];
  const { special, exact, operands: count } = operations[operation] as Operation;
  const said = `${operation}.${mode}.${name} of ${operands.slice(0, count).map((one) => one.toString(16)).join(", ")}`;
  const reads = operands.slice(0, count).map((code) => read(format, code));
  const [x = NaN, y = NaN, z = NaN] = operands.map((code) => toNumber(format, code));
  const asDouble = special(x, y, z);
  const finite = reads.every(({ kind }) => kind === "finite");
  const isPole = (operation === "div" && y === 0) || (operation === "rcp" && x === 0) ||
    (operation === "sqrt" && x < 0);
  if (!finite || isPole) {
    // Infinities and NaN behave alike in all formats; a result that is finite here is a signed zero.
    if (Number.isNaN(asDouble)) {
      // Instructions on doubles propagate a NaN operand, made quiet: the first in the order of an H200.
      const order = operation === "div" ? [0, 1] : [1, 2, 0];
      const first = order.find((i) => i < count && reads[i]?.kind === "nan");
      const passed = name === "f64" && first !== undefined ? operands[first] : undefined;
      return assertEquals(result, passed === undefined ? canonicalNan[name] : passed | (1n << 51n), said);
    }
    const value = toNumber(format, result);
    // No finite nonzero result has an infinite operand, so this is an infinity or a zero.
    return assert(Object.is(value, asDouble), `${said}: ${value}, not ${asDouble}`);
  }
  const parts = reads.map(({ numerator, denominator }) => [numerator, denominator]);
  const value = exact(parts[0] ?? [], parts[1] ?? [], parts[2] ?? []);
  if (value === null) {
    const cancels = ["add", "sub", "fma"].includes(operation);
    // Cancelling to zero gives -0 only when rounding down; other zeros have the sign that doubles give them.
    const signs = cancels ? operation === "fma" ? [x * y, z] : operation === "sub" ? [x, -y] : [x, y] : [];
    const allNegative = signs.every((one) => Object.is(one, -0));
    const allPositive = signs.every((one) => Object.is(one, 0));
    const zero = cancels ? (allNegative ? -0 : allPositive ? 0 : mode === "rm" ? -0 : 0) : asDouble;
    const isTrueZero = operation !== "fma" || x === 0 || y === 0 || x * y !== 0;
    if (isTrueZero) assert(Object.is(toNumber(format, result), zero), `${said}: the sign of zero`);
    return;
  }
  assert(isRounded(format, mode, result, value.negative, value.compare), `${said} gives ${result.toString(16)}`);
}

function law(name: Name, operation: string, mode: string, suffix = ""): void {
  const { operands } = operations[operation] as Operation;
  const sources = ["%a", "%b", "%c"].slice(0, operands).join(", ");
  const line = `${operation}.${mode}${suffix}.${name} %d, ${sources};`;
  check(
    fc.property(anyCases(name), (cases) => {
      const results = execute(line, [name, name], cases);
      results.forEach((result, i) => verify(name, operation, mode, cases[i] ?? [], result));
    }),
    5,
  );
}

for (const name of ["f32", "f64"] as const) {
  for (const operation of Object.keys(operations)) {
    test(`${operation} of ${name} rounds exactly in all directions`, () => {
      for (const mode of ["rn", "rz", "rm", "rp"]) law(name, operation, mode);
    });
  }
}

for (const name of ["f16", "bf16"] as const) {
  test(`add, sub, mul and fma of ${name} round exactly`, () => {
    for (const operation of ["add", "sub", "mul", "fma"]) law(name, operation, "rn");
  });
  test(`${name}x2 is ${name} twice`, () => {
    check(
      fc.property(anyCases(name), (cases) => {
        const pairs = cases.map(([a, b, c], i): Case => {
          const [x, y, z] = cases[cases.length - 1 - i] ?? [0n, 0n, 0n];
          return [a | (x << 16n), b | (y << 16n), c | (z << 16n)];
        });
        const twice = (single: readonly bigint[]): bigint[] =>
          single.map((low, i) => low | ((single[cases.length - 1 - i] ?? 0n) << 16n));
        for (const compare of ["lt", "neu", "nan"]) {
          const own = execute(`set.${compare}.${name}.${name} %d, %a, %b;`, [name, name], cases);
          const mask = own.map((code) => code === 0n ? 0n : 0xffffn);
          const line = (result: string): string => `set.${compare}.${result}.${name}x2 %d, %a, %b;`;
          assertEquals(execute(line(`${name}x2`), ["b32", "b32"], pairs), twice(own));
          for (const type of ["u32", "s32"]) assertEquals(execute(line(type), ["b32", "b32"], pairs), twice(mask));
          for (const [half, mine] of [["%q|%p", 16n], ["%p|%q", 0n], ["%p", 0n]] as const) {
            const either = `setp.${compare}.${name}x2 ${half}, %a, %b; selp.b32 %d, 1, 0, %p;`;
            const word = twice(mask).map((both) => (both >> mine) & 1n);
            assertEquals(execute(either, ["b32", "b32"], pairs), word, either);
          }
          const both = `setp.ne.b32 %p, %c, 0; set.${compare}.xor.u32.${name}x2 %d, %a, %b, %p;`;
          const flipped = twice(mask).map((word, i) => pairs[i]?.[2] === 0n ? word : word ^ 0xffffffffn);
          assertEquals(execute(both, ["b32", "b32"], pairs), flipped);
        }
        for (const line of ["add", "mul", "fma.rn"]) {
          const sources = line === "fma.rn" ? "%a, %b, %c" : "%a, %b";
          const single = execute(`${line}.${name} %d, ${sources};`, [name, name], cases);
          const packed = execute(`${line}.${name}x2 %d, ${sources};`, ["b32", "b32"], pairs);
          assertEquals(packed, twice(single));
        }
      }),
      10,
    );
  });
}

test("a fused product is rounded once where two roundings differ", () => {
  const bits = (value: number): bigint => {
    const view = new DataView(new ArrayBuffer(4));
    view.setFloat32(0, value);
    return BigInt(view.getUint32(0));
  };
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24: the last bit is a tie, broken by the addend, which is too small for a double.
  const x = 1 + 2 ** -12;
  const [up, down] = execute("fma.rn.f32 %d, %a, %b, %c;", ["f32", "f32"], [
    [bits(x), bits(x), bits(2 ** -100)],
    [bits(x), bits(x), bits(-(2 ** -100))],
  ]);
  assertEquals([up, down], [bits(1 + 2 ** -11 + 2 ** -23), bits(1 + 2 ** -11)]);
});

const ones = { u32: 0xffffffffn, s32: 0xffffffffn, f16: 0x3c00n, bf16: 0x3f80n };

/** What `set` gives where a comparison holds, by what it compares and the type of its result. */
const resultsOf: Readonly<Record<Name, Readonly<Record<string, bigint>>>> = {
  f16: { ...ones, u16: 0xffffn, s16: 0xffffn },
  bf16: { u32: ones.u32, s32: ones.s32, bf16: ones.bf16, u16: 0xffffn, s16: 0xffffn },
  f32: { ...ones, f32: 0x3f800000n },
  f64: { ...ones, f32: 0x3f800000n },
};

const decode = (name: Name, code: bigint): number => toNumber(formats[name], code);

for (const name of ["f16", "bf16", "f32", "f64"] as const) {
  test(`min and max of ${name} prefer numbers to NaN and order the zeros`, () => {
    check(
      fc.property(anyCases(name), (cases) => {
        for (const which of ["min", "max"] as const) {
          const plain = execute(`${which}.${name} %d, %a, %b;`, [name, name], cases);
          plain.forEach((result, i) => {
            const [a, b] = (cases[i] ?? []).map((code) => decode(name, code)) as [number, number];
            if (Number.isNaN(a) && Number.isNaN(b)) return assert(Number.isNaN(decode(name, result)));
            const expected = Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math[which](a, b);
            assert(Object.is(decode(name, result), expected), `${which} of ${a}, ${b}: ${decode(name, result)}`);
          });
          if (name === "f64") continue;
          execute(`${which}.NaN.${name} %d, %a, %b;`, [name, name], cases).forEach((result, i) => {
            const [a, b] = (cases[i] ?? []).map((code) => decode(name, code)) as [number, number];
            assert(Object.is(decode(name, result), Math[which](a, b)), `${which}.NaN of ${a}, ${b}`);
          });
        }
      }),
      10,
    );
  });
  test(`comparisons of ${name} handle NaN`, () => {
    const tests: Record<string, (a: number, b: number) => boolean> = {
      eq: (a, b) => a === b,
      ne: (a, b) => a < b || a > b,
      lt: (a, b) => a < b,
      le: (a, b) => a <= b,
      gt: (a, b) => a > b,
      ge: (a, b) => a >= b,
      equ: (a, b) => !(a < b || a > b),
      neu: (a, b) => a !== b,
      ltu: (a, b) => !(a >= b),
      leu: (a, b) => !(a > b),
      gtu: (a, b) => !(a <= b),
      geu: (a, b) => !(a < b),
      num: (a, b) => !Number.isNaN(a) && !Number.isNaN(b),
      nan: (a, b) => Number.isNaN(a) || Number.isNaN(b),
    };
    check(
      fc.property(anyCases(name), (cases) => {
        for (const [compare, holds] of Object.entries(tests)) {
          const expected = cases.map(([a, b]) => holds(decode(name, a), decode(name, b)) ? 1n : 0n);
          assertEquals(execute(`setp.${compare}.${name} %d, %a, %b;`, ["pred", name], cases), expected, compare);
          for (const [result, yes] of Object.entries(resultsOf[name])) {
            const line = `set.${compare}.${result}.${name} %d, %a, %b;`;
            assertEquals(execute(line, [result, name], cases), expected.map((holds) => holds * yes), line);
          }
        }
      }),
      6,
    );
  });
  test(`abs and neg of ${name} change only the sign`, () => {
    const sign = 1n << BigInt(formats[name].bits - 1);
    // An H200 returns one canonical NaN in binary16, whatever the operand.
    const kept = (a: bigint): bigint | null => name === "f16" && read(formats[name], a).kind === "nan" ? 0x7fffn : null;
    check(
      fc.property(anyCases(name), (cases) => {
        assertEquals(execute(`abs.${name} %d, %a;`, [name, name], cases), cases.map(([a]) => kept(a) ?? a & ~sign));
        assertEquals(execute(`neg.${name} %d, %a;`, [name, name], cases), cases.map(([a]) => kept(a) ?? a ^ sign));
      }),
      6,
    );
  });
}

test("ftz makes numbers too small to be normal zero, as operands and as results", () => {
  const flush = (x: number): number => Math.abs(x) < 2 ** -126 ? (x < 0 || Object.is(x, -0) ? -0 : 0) : x;
  const lines: [string, (a: number, b: number, c: number) => number][] = [
    ["add.ftz.f32 %d, %a, %b;", (a, b) => a + b],
    ["mul.rn.ftz.f32 %d, %a, %b;", (a, b) => a * b],
    ["div.rn.ftz.f32 %d, %a, %b;", (a, b) => a / b],
    ["min.ftz.f32 %d, %a, %b;", (a, b) => Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.min(a, b)],
    ["sqrt.rn.ftz.f32 %d, %a;", (a) => Math.sqrt(a)],
  ];
  check(
    fc.property(anyCases("f32"), (cases) => {
      for (const [line, compute] of lines) {
        execute(line, ["f32", "f32"], cases).forEach((result, i) => {
          const [a, b, c] = (cases[i] ?? []).map((code) => flush(decode("f32", code))) as [number, number, number];
          // Tininess is detected after rounding, with unbounded exponent.
          const exact = compute(a, b, c);
          const isTiny = Math.abs(Math.fround(exact * 2 ** 32)) < 2 ** -94;
          const expected = isTiny ? flush(exact) : Math.fround(exact);
          assert(Object.is(decode("f32", result), expected), `${line} of ${a}, ${b}: ${decode("f32", result)}`);
        });
      }
    }),
    10,
  );
});

test("ftz keeps results rounded up to the smallest normal number, by the rounding mode, as an H200 does", () => {
  const edges: [bigint, bigint, bigint][] = [[0x00800001n, 0x3f7ffffen, 0n], [0x80800001n, 0x3f7ffffen, 0n]];
  const law = (rounding: string, results: bigint[]) =>
    assertEquals(execute(`mul.${rounding}.ftz.f32 %d, %a, %b;`, ["f32", "f32"], edges), results);
  law("rn", [0x00800000n, 0x80800000n]);
  law("rz", [0n, 0x80000000n]);
  law("rm", [0n, 0x80800000n]);
  law("rp", [0x00800000n, 0x80000000n]);
});

test("sat clamps into [0, 1] and makes NaN 0", () => {
  check(
    fc.property(anyCases("f32"), (cases) => {
      execute("add.sat.f32 %d, %a, %b;", ["f32", "f32"], cases).forEach((result, i) => {
        const [a, b] = (cases[i] ?? []).map((code) => decode("f32", code)) as [number, number];
        const sum = Math.fround(a + b);
        assertEquals(decode("f32", result), sum > 0 ? Math.min(1, sum) : 0);
      });
    }),
    10,
  );
});

test("approximations are the true values, rounded to nearest", () => {
  const f32 = (x: number): number => Math.fround(x);
  const lines: [string, (a: number) => number][] = [
    ["rcp.approx.f32", (a) => 1 / a],
    ["sqrt.approx.f32", Math.sqrt],
    ["rsqrt.approx.f32", (a) => 1 / Math.sqrt(a)],
    ["sin.approx.f32", Math.sin],
    ["cos.approx.f32", Math.cos],
    ["lg2.approx.f32", Math.log2],
    ["ex2.approx.f32", (a) => 2 ** a],
    ["tanh.approx.f32", Math.tanh],
  ];
  check(
    fc.property(anyCases("f32"), (cases) => {
      for (const [line, compute] of lines) {
        execute(`${line} %d, %a;`, ["f32", "f32"], cases).forEach((result, i) => {
          const a = decode("f32", cases[i]?.[0] ?? 0n);
          assert(Object.is(decode("f32", result), f32(compute(a))), `${line} of ${a}`);
        });
      }
    }),
    6,
  );
});

test("copysign and testp look only at bits", () => {
  for (const name of ["f32", "f64"] as const) {
    const sign = 1n << BigInt(formats[name].bits - 1);
    check(
      fc.property(anyCases(name), (cases) => {
        const signed = cases.map(([a, b]) => (b & ~sign) | (a & sign));
        assertEquals(execute(`copysign.${name} %d, %a, %b;`, [name, name], cases), signed);
        const tests: Record<string, (code: bigint) => boolean> = {
          finite: (code) => read(formats[name], code).kind === "finite",
          infinite: (code) => read(formats[name], code).kind === "infinite",
          notanumber: (code) => read(formats[name], code).kind === "nan",
          number: (code) => read(formats[name], code).kind !== "nan",
          subnormal: (code) => (code & ~sign) !== 0n && (code & ~sign) < 1n << BigInt(formats[name].fractionBits),
          // Zeros count as normal.
          normal: (code) =>
            read(formats[name], code).kind === "finite" &&
            ((code & ~sign) === 0n || (code & ~sign) >= 1n << BigInt(formats[name].fractionBits)),
        };
        for (const [what, holds] of Object.entries(tests)) {
          const expected = cases.map(([a]) => holds(a) ? 1n : 0n);
          assertEquals(execute(`testp.${what}.${name} %d, %a;`, ["pred", name], cases), expected, what);
        }
      }),
      6,
    );
  }
});
