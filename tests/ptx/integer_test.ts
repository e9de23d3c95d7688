/** Every integer instruction against the same computation on arbitrary-precision integers. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { check, fc } from "../support/property.ts";
import { anyBits, anyCases, type Case, execute, type Types } from "../support/ptx/instruction.ts";

type Oracle = (a: bigint, b: bigint, c: bigint) => bigint;

function widthOf(type: string): number {
  return Number(type.slice(1));
}

function read(type: string, bits: bigint): bigint {
  return type.startsWith("s") ? BigInt.asIntN(widthOf(type), bits) : BigInt.asUintN(widthOf(type), bits);
}

/** Executes and compares; operands are read, and results written, by their types. */
function law(line: string, types: Types, oracle: Oracle, cases = anyCases(...widths(types))): void {
  const [d, a, b = a, c = a] = types;
  check(
    fc.property(cases, (list: Case[]) => {
      const expected = list.map(([x, y, z]) => {
        const value = oracle(read(a, x), read(b, y), read(c, z));
        return d === "pred" ? value : BigInt.asUintN(widthOf(d), value);
      });
      assertEquals(execute(line, types, list), expected, line);
    }),
    4,
  );
}

function widths([, a, b = a, c = a]: Types): [number, number, number] {
  return [widthOf(a), widthOf(b), widthOf(c)];
}

const integers = ["u16", "s16", "u32", "s32", "u64", "s64"];
const abs = (x: bigint): bigint => x < 0n ? -x : x;
const bit = (x: bigint, i: number): bigint => (x >> BigInt(i)) & 1n;

for (const type of integers) {
  const bits = widthOf(type);
  const all: Types = [type, type];
  test(`add, sub, mul, mad, div, rem, min, max and sad of ${type}`, () => {
    law(`add.${type} %d, %a, %b;`, all, (a, b) => a + b);
    law(`sub.${type} %d, %a, %b;`, all, (a, b) => a - b);
    law(`mul.lo.${type} %d, %a, %b;`, all, (a, b) => a * b);
    law(`mul.hi.${type} %d, %a, %b;`, all, (a, b) => (a * b) >> BigInt(bits));
    law(`mad.lo.${type} %d, %a, %b, %c;`, all, (a, b, c) => a * b + c);
    law(`mad.hi.${type} %d, %a, %b, %c;`, all, (a, b, c) => ((a * b) >> BigInt(bits)) + c);
    law(`div.${type} %d, %a, %b;`, all, (a, b) => b === 0n ? -1n : a / b);
    law(`rem.${type} %d, %a, %b;`, all, (a, b) => b === 0n ? -1n : a % b);
    law(`min.${type} %d, %a, %b;`, all, (a, b) => a < b ? a : b);
    law(`max.${type} %d, %a, %b;`, all, (a, b) => a > b ? a : b);
    law(`sad.${type} %d, %a, %b, %c;`, all, (a, b, c) => abs(a - b) + c);
    law(`add.${type} %d, %d, %a;`.replace("%d, %d", "%d, %b"), all, (a, b) => a + b);
  });
  test(`comparisons and selection of ${type}`, () => {
    const tests: [string, (a: bigint, b: bigint) => boolean][] = [
      ["eq", (a, b) => a === b],
      ["ne", (a, b) => a !== b],
      ["lt", (a, b) => a < b],
      ["le", (a, b) => a <= b],
      ["gt", (a, b) => a > b],
      ["ge", (a, b) => a >= b],
    ];
    for (const [name, holds] of tests) {
      law(`setp.${name}.${type} %d, %a, %b;`, ["pred", type], (a, b) => holds(a, b) ? 1n : 0n);
      law(`setp.${name}.${type} %p, %a, %b; selp.b${bits} %d, %a, %c, %p;`, all, (a, b, c) => holds(a, b) ? a : c);
      law(`setp.${name}.${type} %p, %a, %b; selp.b${bits} %d, %a, %c, !%p;`, all, (a, b, c) => holds(a, b) ? c : a);
    }
    law(
      `setp.lt.${type} %q, %a, %c; setp.eq.xor.${type} %p|%d, %a, %b, !%q;`,
      ["pred", type],
      (a, b, c) => (a !== b) !== !(a < c) ? 1n : 0n,
    );
  });
  test(`shifts of ${type} by any amount`, () => {
    const amount = anyCases(bits, 32);
    law(`shr.${type} %d, %a, %b;`, [type, type, "u32"], (a, n) => a >> (n > 64n ? 64n : n), amount);
    law(`shl.b${bits} %d, %a, %b;`, [type, type, "u32"], (a, n) => a << (n > 64n ? 64n : n), amount);
  });
}

test("absolute differences of bytes and of halves, and their sum", () => {
  for (const [opcode, bits] of [["vabsdiff4", 8], ["vabsdiff2", 16]] as const) {
    const parts = (a: bigint, b: bigint): bigint[] =>
      Array.from({ length: 32 / bits }, (_, i) => {
        const part = (word: bigint): bigint => BigInt.asUintN(bits, word >> BigInt(bits * i));
        return abs(part(a) - part(b));
      });
    const line = (modifiers: string): string => `${opcode}.u32.u32.u32${modifiers} %d, %a, %b, %c;`;
    law(line(""), ["u32", "u32"], (a, b) => parts(a, b).reduceRight((word, part) => (word << BigInt(bits)) | part));
    law(line(".add"), ["u32", "u32"], (a, b, c) => parts(a, b).reduce((sum, part) => sum + part, c));
  }
});

for (const type of ["u16", "s16"]) {
  test(`sums, minima and maxima of ${type}x2 are those of its halves`, () => {
    const halves = (oracle: Oracle): Oracle => (a, b) => {
      const half = (shift: bigint): bigint =>
        BigInt.asUintN(16, oracle(read(type, a >> shift), read(type, b >> shift), 0n)) << shift;
      return half(0n) | half(16n);
    };
    const pair = (line: string, oracle: Oracle): void =>
      law(`${line}.${type}x2 %d, %a, %b;`, ["b32", "b32"], halves(oracle));
    pair("add", (a, b) => a + b);
    pair("min", (a, b) => a < b ? a : b);
    pair("max", (a, b) => a > b ? a : b);
    if (type === "u16") return;
    pair("min.relu", (a, b) => a < 0n || b < 0n ? 0n : a < b ? a : b);
    pair("max.relu", (a, b) => a < 0n && b < 0n ? 0n : a > b ? a : b);
  });
}

for (const type of ["u16", "s16", "u32", "s32"]) {
  test(`wide products of ${type}`, () => {
    const wide = `${type[0]}${widthOf(type) * 2}`;
    law(`mul.wide.${type} %d, %a, %b;`, [wide, type], (a, b) => a * b);
    law(`mad.wide.${type} %d, %a, %b, %c;`, [wide, type, type, wide], (a, b, c) => a * b + c);
  });
}

for (const type of ["u32", "s32", "u64", "s64"]) {
  const bits = widthOf(type);
  test(`bit fields of ${type}`, () => {
    const fields = fc.array(fc.tuple(anyBits(bits), anyBits(8), anyBits(8)), {
      minLength: 1,
      maxLength: 200,
      size: "max",
    });
    // The definition of the instruction set, bit by bit.
    law(`bfe.${type} %d, %a, %b, %c;`, [type, type, "u32", "u32"], (a, b, c) => {
      const [position, length] = [Number(b & 0xffn), Number(c & 0xffn)];
      const sign = type.startsWith("u") || length === 0 ? 0n : bit(a, Math.min(position + length - 1, bits - 1));
      let result = 0n;
      for (let i = 0; i < bits; i++) {
        result |= (i < length && position + i < bits ? bit(a, position + i) : sign) << BigInt(i);
      }
      return result;
    }, fields);
    law(`bfind.${type} %d, %a;`, ["u32", type], (a) => {
      const size = a < 0n ? ~a : a;
      for (let i = bits - 1; i >= 0; i--) if (bit(size, i) === 1n) return BigInt(i);
      return -1n;
    });
    law(`bfind.shiftamt.${type} %d, %a;`, ["u32", type], (a) => {
      const size = a < 0n ? ~a : a;
      for (let i = bits - 1; i >= 0; i--) if (bit(size, i) === 1n) return BigInt(bits - 1 - i);
      return -1n;
    });
  });
  test(`carries of ${type}`, () => {
    const modulus = 1n << BigInt(bits);
    law(
      `add.cc.${type} %d, %a, %b; addc.${type} %d, %c, 0;`,
      [type, type],
      (a, b, c) => c + (BigInt.asUintN(bits, a) + BigInt.asUintN(bits, b) >= modulus ? 1n : 0n),
    );
    law(
      `sub.cc.${type} %d, %a, %b; subc.${type} %d, %c, 0;`,
      [type, type],
      (a, b, c) => c - (BigInt.asUintN(bits, a) < BigInt.asUintN(bits, b) ? 1n : 0n),
    );
  });
}

for (const bits of [16, 32, 64]) {
  const type = `b${bits}`;
  test(`logic of ${type}`, () => {
    law(`and.${type} %d, %a, %b;`, [type, type], (a, b) => a & b);
    law(`or.${type} %d, %a, %b;`, [type, type], (a, b) => a | b);
    law(`xor.${type} %d, %a, %b;`, [type, type], (a, b) => a ^ b);
    law(`not.${type} %d, %a;`, [type, type], (a) => ~a);
    law(`cnot.${type} %d, %a;`, [type, type], (a) => a === 0n ? 1n : 0n);
    law(`abs.s${bits} %d, %a;`, [`s${bits}`, `s${bits}`], abs);
    law(`neg.s${bits} %d, %a;`, [`s${bits}`, `s${bits}`], (a) => -a);
  });
}

for (const bits of [32, 64]) {
  const type = `b${bits}`;
  test(`counting and reversing of ${type}`, () => {
    const text = (a: bigint): string => a.toString(2).padStart(bits, "0");
    law(`popc.${type} %d, %a;`, ["u32", type], (a) => BigInt(text(a).replaceAll("0", "").length));
    law(`clz.${type} %d, %a;`, ["u32", type], (a) => BigInt(/^0*/.exec(text(a))?.[0].length ?? 0));
    law(`brev.${type} %d, %a;`, [type, type], (a) => BigInt(`0b${text(a).split("").reverse().join("")}`));
    const fields = fc.array(fc.tuple(anyBits(bits), anyBits(bits), anyBits(8)), {
      minLength: 1,
      maxLength: 99,
      size: "max",
    });
    law(`bfi.${type} %d, %a, %b, %c, 9;`, [type, type, type, "u32"], (a, b, c) => {
      let result = b;
      for (let i = 0; i < 9; i++) {
        const at = Number(c & 0xffn) + i;
        if (at < bits) result = (result & ~(1n << BigInt(at))) | (bit(a, i) << BigInt(at));
      }
      return result;
    }, fields);
  });
}

test("lop3 is the function that its table defines", () => {
  check(
    fc.property(fc.integer({ min: 0, max: 255 }), (table) => {
      law(`lop3.b32 %d, %a, %b, %c, ${table};`, ["b32", "b32"], (a, b, c) => {
        let result = 0n;
        for (let i = 0; i < 32; i++) {
          const row = (bit(a, i) << 2n) | (bit(b, i) << 1n) | bit(c, i);
          result |= bit(BigInt(table), Number(row)) << BigInt(i);
        }
        return result;
      });
    }),
    6,
  );
});

test("prmt picks bytes, with or without their sign", () => {
  const byte = (all: bigint, i: bigint): bigint => (all >> (8n * i)) & 0xffn;
  law("prmt.b32 %d, %a, %b, %c;", ["b32", "b32"], (a, b, c) => {
    const all = (b << 32n) | a;
    let result = 0n;
    for (let i = 0n; i < 4n; i++) {
      const nibble = (c >> (4n * i)) & 0xfn;
      const picked = byte(all, nibble & 7n);
      result |= (nibble & 8n ? (picked & 0x80n ? 0xffn : 0n) : picked) << (8n * i);
    }
    return result;
  });
  const modes: [string, (s: number) => [number, number, number, number]][] = [
    ["f4e", (s) => [s, s + 1, s + 2, s + 3]],
    ["b4e", (s) => [s, (s + 7) % 8, (s + 6) % 8, (s + 5) % 8]],
    ["rc8", (s) => [s, s, s, s]],
    ["ecl", (s) => [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]][s] as [number, number, number, number]],
    ["ecr", (s) => [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]][s] as [number, number, number, number]],
    ["rc16", (s) => s % 2 === 0 ? [0, 1, 0, 1] : [2, 3, 2, 3]],
  ];
  for (const [mode, picks] of modes) {
    law(
      `prmt.b32.${mode} %d, %a, %b, %c;`,
      ["b32", "b32"],
      (a, b, c) =>
        picks(Number(c & 3n)).reduce((sum, at, i) => sum | (byte((b << 32n) | a, BigInt(at)) << BigInt(8 * i)), 0n),
    );
  }
});

test("funnel shifts take 32 bits out of 64", () => {
  for (const mode of ["wrap", "clamp"]) {
    const amount = (c: bigint): bigint => mode === "wrap" ? c & 31n : c < 32n ? c : 32n;
    law(`shf.l.${mode}.b32 %d, %a, %b, %c;`, ["b32", "b32"], (a, b, c) => (((b << 32n) | a) << amount(c)) >> 32n);
    law(`shf.r.${mode}.b32 %d, %a, %b, %c;`, ["b32", "b32"], (a, b, c) => ((b << 32n) | a) >> amount(c));
  }
});

test("24-bit products, saturating sums and dot products", () => {
  const clamp = (x: bigint): bigint => x < -(1n << 31n) ? -(1n << 31n) : x >= 1n << 31n ? (1n << 31n) - 1n : x;
  law("add.sat.s32 %d, %a, %b;", ["s32", "s32"], (a, b) => clamp(a + b));
  law("sub.sat.s32 %d, %a, %b;", ["s32", "s32"], (a, b) => clamp(a - b));
  law("mad.hi.sat.s32 %d, %a, %b, %c;", ["s32", "s32"], (a, b, c) => clamp(((a * b) >> 32n) + c));
  for (const type of ["u32", "s32"]) {
    const cut = (x: bigint): bigint => type === "s32" ? BigInt.asIntN(24, x) : BigInt.asUintN(24, x);
    law(`mul24.lo.${type} %d, %a, %b;`, [type, type], (a, b) => cut(a) * cut(b));
    law(`mul24.hi.${type} %d, %a, %b;`, [type, type], (a, b) => (cut(a) * cut(b)) >> 16n);
    law(`mad24.lo.${type} %d, %a, %b, %c;`, [type, type], (a, b, c) => cut(a) * cut(b) + c);
  }
  for (const left of ["u32", "s32"]) {
    for (const right of ["u32", "s32"]) {
      const part = (type: string, x: bigint, bits: number, i: number): bigint =>
        (type === "s32" ? BigInt.asIntN : BigInt.asUintN)(bits, x >> BigInt(bits * i));
      law(
        `dp4a.${left}.${right} %d, %a, %b, %c;`,
        ["b32", "b32"],
        (a, b, c) => [0, 1, 2, 3].reduce((sum, i) => sum + part(left, a, 8, i) * part(right, b, 8, i), c),
      );
      law(
        `dp2a.hi.${left}.${right} %d, %a, %b, %c;`,
        ["b32", "b32"],
        (a, b, c) => [0, 1].reduce((sum, i) => sum + part(left, a, 16, i) * part(right, b, 8, i + 2), c),
      );
    }
  }
});

test("conversions between integers of all widths, wrapping or saturating", () => {
  const types = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
  for (const to of types) {
    for (const from of types) {
      const limit = 1n << BigInt(widthOf(to) - (to.startsWith("s") ? 1 : 0));
      const min = to.startsWith("s") ? -limit : 0n;
      const register = to.replace(/8$/, "16").replace(/116$/, "16");
      law(`cvt.${to}.${from} %d, %a;`, [register, from], (a) => read(to, BigInt.asUintN(64, a)));
      // PTX has no .sat where every value fits.
      const fits = to.startsWith("s") === from.startsWith("s") ? widthOf(to) >= widthOf(from) : to.startsWith("s") &&
        widthOf(to) > widthOf(from);
      if (fits) continue;
      law(
        `cvt.sat.${to}.${from} %d, %a;`,
        [register, from],
        (a) => a < min ? min : a >= limit ? limit - 1n : a,
      );
    }
  }
});
