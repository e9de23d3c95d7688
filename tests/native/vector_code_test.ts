/**
 * Vector code on emulated processors of both kinds, against WebAssembly, which has the same computations and runs
 * here.
 */
import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { aarch64, type Operation, x8664 } from "../../src/native/assembler.ts";
import {
  type Computation,
  computations,
  inRegisters,
  VECTOR_REGISTERS,
  type VectorInstruction,
} from "../../src/native/vector_registers.ts";
import { compile, type Instruction, scratch } from "../../src/wasm/mod.ts";
import { missingUnicorn, python } from "../support/emulator.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";

/** Where emulate_call.py puts the memory. */
const base = 0x30_0000;

/** The offset in it at which results are written. */
const written = 0x80;

const architectures = { x86_64: x8664, aarch64 } as const;

const lanes: Readonly<Record<string, readonly number[]>> = {
  "upper half": [8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7],
  "lower halves": [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23],
  "evens of 4": Array.from({ length: 16 }, (_, at) => 2 * at - at % 4),
  "evens of 2": Array.from({ length: 16 }, (_, at) => 2 * at - at % 2),
  "evens of 1": Array.from({ length: 16 }, (_, at) => 2 * at),
};

const isShift = (name: string) => /\.sh[lr]/.test(name);

/** The instructions that compute, after those that load the operands. */
function instructionsOf(name: Computation, count: number): Instruction[] {
  const shuffle = lanes[name];
  if (shuffle !== undefined) return [["i8x16.shuffle", ...shuffle]];
  return [...isShift(name) ? [["i32.const", count] as const] : [], [name] as Instruction]; // a WebAssembly name
}

/** Reads operands from 0, 16 and 32, and writes the result to 48. */
function bodyOf(name: Computation, count: number): Instruction[] {
  const operands = Array.from({ length: computations[name] }, (_, i): Instruction[] => [
    ["local.get", 0],
    ["v128.load", 16 * i],
  ]);
  if (name === "upper half") operands.push(...operands);
  return [["local.get", 1], ...operands.flat(), ...instructionsOf(name, count), ["v128.store", 48]];
}

const compiled = new Map<string, (...numbers: number[]) => number>();

function computed(name: Computation, count: number, operands: Uint8Array): Uint8Array {
  const memory = scratch(64);
  memory.set(operands);
  const code = { parameters: 2, locals: [], body: bodyOf(name, count) };
  compiled.getOrInsertComputed(isShift(name) ? `${name} ${count}` : name, () => compile(code))(0, 0);
  return memory.slice(48, 64);
}

/** NaN for every NaN, whose bits are unspecified. */
function comparable(name: Computation, bytes: Uint8Array): unknown {
  const { buffer, byteOffset } = bytes.slice();
  if (/\.(eq|ne|lt|gt|ge)$/.test(name)) return [...bytes];
  if (name.startsWith("f32x4")) return [...new Float32Array(buffer, byteOffset, 4)].map(String);
  if (name.startsWith("f64x2")) return [...new Float64Array(buffer, byteOffset, 2)].map(String);
  return [...bytes];
}

const edges = [
  0,
  -0,
  0.5,
  1.5,
  -1.5,
  255,
  65535.5,
  2 ** 31,
  2 ** 31 - 128,
  2 ** 31 - 0.5,
  2 ** 31 + 1.5,
  -(2 ** 31),
  -(2 ** 31) - 256,
  3e9,
  2 ** 32,
  2 ** 32 - 256,
  2 ** 32 - 0.5,
  1e30,
];
const special = [...edges, ...edges.map((value) => -value), NaN, Infinity, -Infinity, 1e-42, 1e300, 1 + 2 ** -24];
const ofBytes = (array: { readonly buffer: ArrayBufferLike }) => new Uint8Array(array.buffer as ArrayBuffer);
const vectors = fc.oneof(
  fc.uint8Array({ minLength: 16, maxLength: 16 }),
  fc.array(fc.constantFrom(0, 1, 2, 127, 128, 254, 255), { minLength: 16, maxLength: 16 }).map((all) =>
    Uint8Array.from(all)
  ),
  fc.array(fc.constantFrom(...special), { minLength: 4, maxLength: 4 }).map((all) => ofBytes(Float32Array.from(all))),
  fc.array(fc.constantFrom(...special), { minLength: 2, maxLength: 2 }).map((all) => ofBytes(Float64Array.from(all))),
  fc.array(fc.constantFrom(-1, 0, 1, 2 ** 31 - 1, 2 ** 31, 0x8000, 0x7fff, 0x1_0000, 0x7fff_ffc0, 0xffff_ff80), {
    minLength: 4,
    maxLength: 4,
  }).map((all) => ofBytes(Int32Array.from(all))),
);

/** Three operands, two of them often alike, at least in part. */
const operandsOf: fc.Arbitrary<Uint8Array<ArrayBuffer>> = fc.tuple(vectors, vectors, vectors, fc.nat(3), fc.nat(15))
  .map(([one, other, last, alike, at]) => {
    const second = alike === 0 ? other : one.map((byte, i) => alike === 1 && i === at ? byte ^ 1 : byte);
    return Uint8Array.from([...one, ...second, ...last]);
  });

interface Case {
  readonly name: Computation;
  readonly count: number;
  readonly operands: Uint8Array<ArrayBuffer>;
  /** The registers of the result and the operands, which may coincide. */
  readonly registers: readonly number[];
}

const all = Object.keys(computations) as Computation[];
const register = fc.nat(VECTOR_REGISTERS - 1);

function caseOf(name: Computation): fc.Arbitrary<Case> {
  const bits = { i16x8: 16, i32x4: 32, i64x2: 64 }[name.slice(0, 5)] ?? 8;
  return fc.record({
    name: fc.constant(name),
    count: fc.oneof(fc.constantFrom(1, bits / 2), fc.integer({ min: 1, max: bits - 1 })),
    operands: operandsOf,
    registers: fc.oneof(
      fc.tuple(register, register, register, register),
      fc.tuple(register, register).map(([one, other]) => [one, other, one, one]),
      fc.tuple(register, register, register).map(([one, other, last]) => [other, one, other, last]),
      fc.tuple(register, register, register).map(([one, other, last]) => [last, one, other, last]),
    ),
  });
}

/** Loads the operands into their registers, computes, and writes the result and the registers out. */
function programOf({ name, count, registers: [into = 0, ...from] }: Case): Operation[] {
  const operands = from.slice(0, computations[name]);
  return [
    ...operands.map((register, i): Operation => ["vector", ["readVector", register, "input", 16 * i]]),
    ["vector", ["compute", name, into, operands, count]],
    ["vector", ["writeVector", into, "output", 48]],
    ...operands.map((register, i): Operation => ["vector", ["writeVector", register, "output", 64 + 16 * i]]),
    ["return"],
  ];
}

/** The result, and the operand registers afterwards. A register that holds two operands has the one read last. */
function expectedOf({ name, count, operands, registers: [into = 0, ...from] }: Case) {
  const used = from.slice(0, computations[name]);
  const held = used.map((register) => used.lastIndexOf(register)).map((i) => operands.slice(16 * i, 16 * i + 16));
  const given = operands.slice();
  held.forEach((bytes, i) => given.set(bytes, 16 * i));
  const result = computed(name, count, given);
  const after = held.map((bytes, i) => used[i] === into ? comparable(name, result) : [...bytes]);
  return { result: comparable(name, result), after };
}

for (const arch of ["x86_64", "aarch64"] as const) {
  testOnce(
    ...needs(missingUnicorn, `${arch}: every computation has WebAssembly's result, whatever registers it uses`),
    () => {
      const several = fc.tuple(...all.flatMap((name) => [caseOf(name), caseOf(name), caseOf(name), caseOf(name)]));
      check(
        fc.property(fc.noShrink(several), (cases) => {
          const given = cases.map((one) => ({
            arch,
            code: architectures[arch](programOf(one)).toHex(),
            memory: new Uint8Array([...one.operands, ...new Uint8Array(written + 112 - 48)]).toHex(),
            arguments: [base, base, base + written],
          }));
          const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
          const input = JSON.stringify(given);
          const { status, stdout, stderr } = spawnSync(python, [script], { input, encoding: "utf8" });
          assertEquals(status, 0, stderr);
          const reports: { memory: string; returned: boolean; preserved: boolean }[] = JSON.parse(stdout);
          reports.forEach(({ memory, returned, preserved }, i) => {
            const one = cases[i] as Case; // as many as there are reports
            const bytes = Uint8Array.fromHex(memory);
            const at = (offset: number) => bytes.subarray(written + offset, written + offset + 16);
            const used = one.registers.slice(1, 1 + computations[one.name]);
            const after = used.map((register, n) =>
              register === one.registers[0] ? comparable(one.name, at(64 + 16 * n)) : [...at(64 + 16 * n)]
            );
            assertEquals(
              { result: comparable(one.name, at(48)), after, returned, preserved },
              { ...expectedOf(one), returned: true, preserved: true },
              `${one.name} of ${one.registers}`,
            );
          });
        }),
        5,
      );
    },
  );
}

test("constants are kept in registers as long as enough are left, and else are read where they are used", () => {
  const body: VectorInstruction[] = [["local.get", 1], ["local.get", 0], ["v128.load", 0], ["v128.store", 0]];
  const constants = (count: number) => new Map(Array.from({ length: count }, (_, i) => [2 + i, 0n]));
  const before = (count: number) => Array.from({ length: count }, (_, i) => ["readVector", i, "constants", 16 * i]);
  for (const count of [0, 1, VECTOR_REGISTERS - 1, VECTOR_REGISTERS, VECTOR_REGISTERS + 1, 20]) {
    const kept = Math.min(count, VECTOR_REGISTERS - 1);
    assertEquals(inRegisters({ constants: constants(count), body }) as unknown, {
      before: before(kept),
      turn: [["readVector", kept, "input", 0], ["writeVector", kept, "output", 0]],
    });
  }
  const added: VectorInstruction[] = [["local.get", 16], ["i32x4.add"]];
  // Of 15 constants 12 leave registers for a vector and the last constant, which is read anew for each use.
  const sums = [...body.slice(0, 3), ...added, ...added, ...body.slice(3)];
  assertEquals(inRegisters({ constants: constants(15), body: sums }) as unknown, {
    before: before(12),
    turn: [
      ["readVector", 12, "input", 0],
      ["readVector", 13, "constants", 16 * 14],
      ["compute", "i32x4.add", 12, [12, 13], 0],
      ["readVector", 13, "constants", 16 * 14],
      ["compute", "i32x4.add", 12, [12, 13], 0],
      ["writeVector", 12, "output", 0],
    ],
  });
});

test("code with unsupported instructions is not translated, nor code that needs too many registers", () => {
  const body: VectorInstruction[] = [["local.get", 1], ["local.get", 0], ["v128.load", 0], ["v128.store", 0]];
  const turnOf = (code: VectorInstruction[]) => inRegisters({ constants: new Map(), body: code })?.turn;
  const pushed = (count: number) => [
    ...Array.from({ length: count }, (_, i): VectorInstruction[] => [["local.get", 0], ["v128.load", 16 * i]]).flat(),
    ...Array.from({ length: count - 1 }, (): VectorInstruction => ["i32x4.add"]),
  ];
  assertEquals(turnOf(pushed(VECTOR_REGISTERS))?.length, 2 * VECTOR_REGISTERS - 1);
  assertEquals(turnOf(pushed(VECTOR_REGISTERS + 1)), undefined);
  for (const name of ["f64x2.sqrt", "toString"]) {
    assertEquals(turnOf([...body.slice(0, 3), [name], ...body.slice(3)]), undefined);
  }
  // Registers are reused any number of times.
  const loaded: VectorInstruction[] = [["local.get", 0], ["v128.load", 0], ["local.set", 5]];
  const turned: VectorInstruction[] = [
    ["local.get", 5],
    ["local.get", 5],
    ["i8x16.shuffle", ...lanes["upper half"] ?? []],
    ["local.set", 5],
  ];
  const chain = [...loaded, ...Array.from({ length: 20 }, () => turned).flat()];
  assertEquals(turnOf(chain)?.length, 21);
  const renamed: VectorInstruction[] = [["local.get", 5], ["local.set", 6], ["local.get", 1], ["local.get", 5]];
  assertEquals(turnOf([...loaded, ...renamed, ["v128.store", 0]]), undefined);
  const either: VectorInstruction[] = [
    ...[...body.slice(1, 3), ["i64x2.all_true"], ["if"]] as const,
    ...[...body, ["else"], ...body, ["end"]] as const,
  ];
  assertEquals(turnOf(either)?.map(([kind]) => kind), [
    ...["readVector", "anyZero", "ifAllSet", "readVector", "writeVector"],
    ...["otherwise", "readVector", "writeVector", "end"],
  ]);
  assertEquals(turnOf([...either, ...either]), undefined);
  const reversed = Array.from({ length: 16 }, (_, i) => 15 - i);
  const shuffle: VectorInstruction[] = [["local.get", 0], ["v128.load", 0], ["i8x16.shuffle", ...reversed]];
  assertEquals(turnOf([...body.slice(0, 3), ...shuffle]), undefined);
});
