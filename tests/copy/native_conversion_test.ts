/**
 * Conversions by machine code: on emulated processors of both kinds, and on this one with threads, up to the ends of
 * memory. conversion_loop_test.ts tests the values, host_conversion_test.ts the layouts.
 */
import { assert, assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { exactAddress } from "../../src/ffi/mod.ts";
import { DType, slice, StridedLayout } from "../../src/layout/mod.ts";
import { aarch64, x8664 } from "../../src/native/assembler.ts";
import { canMoveNatively } from "../../src/native/mod.ts";
import { loopJob, vectorLoopProgram } from "../../src/native/vector_loop.ts";
import { bytesOf, type Conversion, conversionOf, type NumberType } from "../../src/copy/conversion.ts";
import { TURN, vectorLoopOf } from "../../src/copy/conversion_loop.ts";
import { stageOf } from "../../src/copy/conversion_stage.ts";
import { threadsFor } from "../../src/copy/host_parts.ts";
import { convertAt, convertInPlace, threadsOf } from "../../src/copy/native_conversion.ts";
import { pattern } from "../support/arrays.ts";
import { missingUnicorn, python } from "../support/emulator.ts";
import { GuardedMemory } from "../support/guarded_memory.ts";
import { needs } from "../support/needs.ts";
import { elements, pairsOfTypes, shown } from "../support/numbers.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";
import { convertedOneByOne } from "../support/scalar_conversion.ts";

/** Where emulate_call.py puts the memory, and its size: bytes behind it must not even be read. */
const [base, mapped] = [0x30_0000, 0x1_0000];

const architectures = { x86_64: x8664, aarch64 } as const;

const noCode = canMoveNatively() ? null : "the system refuses executable memory";

const conversions = pairsOfTypes.flatMap(({ from, to }): Conversion[] => {
  const conversion = conversionOf(DType.from(from.name), DType.from(to.name));
  return conversion === null ? [] : [conversion];
});

function conversionBetween(from: string, to: string): Conversion {
  const conversion = conversionOf(DType.from(from), DType.from(to));
  if (conversion === null) throw new Error(`${from} to ${to} converts nothing`);
  return conversion;
}

/** A number of elements, half of them boundary values; or for doubles small ones, all or all but one. */
function elementsOf(type: NumberType, count: number, seed: number): Uint8Array<ArrayBuffer> {
  if (type.name === "float64" && seed % 2 === 0) {
    const large = seed % 4 === 0 ? NaN : (seed >> 2) % count;
    const size = (i: number) => i === large ? 2 ** 60 : 2 ** 52;
    return new Uint8Array(Float64Array.from({ length: count }, (_, i) => Math.sin(i + seed) * size(i) / 2).buffer);
  }
  const dtype = DType.from(type.name);
  const bytes = pattern(count * dtype.itemsize, seed);
  const view = new DataView(bytes.buffer);
  fc.sample(elements(type), { numRuns: Math.ceil(count / 2), seed })
    .forEach((value, i) => dtype.write(view, 2 * i * dtype.itemsize, value));
  return bytes;
}

/** Elements as text: the bits of a NaN are unspecified. */
function shownAll({ name }: NumberType, bytes: Uint8Array): string[] {
  const dtype = DType.from(name);
  const view = new DataView(bytes.slice().buffer);
  return Array.from({ length: bytes.length / dtype.itemsize }, (_, i) => shown(dtype.read(view, i * dtype.itemsize)));
}

test("every pair has machine code", () => {
  const missing = conversions.filter((conversion) => vectorLoopProgram(vectorLoopOf(conversion)) === null);
  assertEquals(missing.map(({ from, to }) => `${from.name} ${to.name}`), []);
});

for (const arch of ["x86_64", "aarch64"] as const) {
  testOnce(
    ...needs(missingUnicorn, `${arch}: machine code converts every turn correctly, and touches nothing else`),
    () => {
      check(
        fc.property(fc.nat(2 ** 20), fc.nat(15), (seed, shift) => {
          // More of this one, because its code branches.
          const whole = Array.from({ length: 16 }, () => conversionBetween("float64", "int64"));
          const cases = [...conversions, ...whole].map((conversion, i) => {
            const loop = vectorLoopOf(conversion);
            const { from } = conversion;
            const turns = 1 + (seed + i) % 3;
            const program = vectorLoopProgram(loop);
            assert(program !== null);
            // Rows with gaps between them, or one that repeats the one before.
            const rows = {
              count: 1 + (seed + i >> 2) % 3,
              to: (seed + i) % 5,
              from: [0, 3, -turns * loop.inputBytes][i % 3] ?? 0,
            };
            const job = new Uint8Array(loopJob([...loop.constants.values()], turns, rows));
            const memory = pattern(mapped, seed);
            const [read, written] = [turns * loop.inputBytes, turns * loop.outputBytes];
            const lies = Array.from({ length: rows.count }, (_, row) => row * (read + rows.from));
            // Nothing is mapped behind the last element.
            const [toAt, fromAt] = [0x1000 + shift, mapped - read - (lies.at(-1) ?? 0)];
            memory.set(job, 0);
            for (const [row, at] of lies.entries()) {
              memory.set(elementsOf(from, read / bytesOf(from), seed + i + row), fromAt + at);
            }
            const addresses = new DataView(memory.buffer);
            addresses.setBigUint64(0, BigInt(base + toAt), true);
            addresses.setBigUint64(8, BigInt(base + fromAt), true);
            const results = lies.map((at, row) => ({
              at: toAt + row * (written + rows.to),
              bytes: convertedOneByOne(memory.slice(fromAt + at, fromAt + at + read), conversion),
            }));
            const code = architectures[arch](program).toHex();
            return { conversion, memory, results, code };
          });
          const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
          const input = JSON.stringify(cases.map(({ code, memory }) => ({
            ...{ arch, code, memory: memory.toHex(), arguments: [base] },
          })));
          const { status, stdout, stderr } = spawnSync(python, [script], {
            input,
            encoding: "utf8",
            maxBuffer: 2 ** 28,
          });
          assertEquals(status, 0, stderr);
          const reports: { memory: string; returned: boolean; preserved: boolean }[] = JSON.parse(stdout);
          assertEquals(reports.length, cases.length);
          for (const [i, { conversion: { from, to }, memory, results }] of cases.entries()) {
            const { memory: after = "", returned, preserved } = reports[i] ?? {};
            const bytes = Uint8Array.fromHex(after);
            const message = `${from.name} to ${to.name}`;
            for (const { at, bytes: row } of results) {
              const written = bytes.subarray(at, at + row.length);
              assertEquals(shownAll(to, written), shownAll(to, row), message);
              memory.set(written, at);
            }
            assertEquals(bytes.findIndex((byte, at) => byte !== memory[at]), -1, message);
            assertEquals({ returned, preserved }, { returned: true, preserved: true }, message);
          }
        }),
        2,
      );
    },
  );
}

test(
  ...needs(noCode, "any number of elements are converted by any number of threads, up to the ends of memory"),
  () => {
    const memory = new GuardedMemory();
    const ends = fc.record({
      conversion: fc.constantFrom(...conversions),
      count: fc.oneof(fc.integer({ min: TURN, max: 4 * TURN }), fc.integer({ min: TURN, max: 3000 })),
      threads: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 4 })),
      shift: fc.nat(70),
      seed: fc.nat(2 ** 20),
    });
    check(
      fc.property(ends, ({ conversion, count, threads, shift, seed }) => {
        memory.reset();
        const { from, to } = conversion;
        const source = elementsOf(from, count, seed);
        const results = convertedOneByOne(source, conversion);
        // Nothing may be read or written behind the elements; bytes before them must stay.
        const [read, written] = [memory.bytes(shift + source.length), memory.bytes(shift + results.length)];
        read.bytes.set(source, shift);
        written.bytes.set(pattern(written.bytes.length, seed));
        const stage = stageOf(conversion);
        const loop = stage.native();
        assert(loop !== null);
        const addressOf = ({ address }: { readonly address: bigint }) => exactAddress(address) + shift;
        convertAt(stage, loop, count, addressOf(written), addressOf(read), threads);
        assertEquals(shownAll(to, written.bytes.subarray(shift)), shownAll(to, results));
        assertEquals(written.bytes.subarray(0, shift), pattern(written.bytes.length, seed).subarray(0, shift));
        assertEquals(read.bytes.subarray(shift), source);
      }),
      300,
    );
  },
);

test(
  ...needs(noCode, "elements are converted again with the same layouts, wherever they begin and whatever they become"),
  () => {
    const count = 5000;
    const layout = (itemsize: number, first: number) =>
      StridedLayout.dense([count + first], itemsize).sliced(slice(first));
    const destination = layout(4, 3);
    for (const [from, first] of [["float32", 0], ["uint8", 2], ["float32", 5], ["float32", 0]] as const) {
      const conversion = conversionBetween(from, "int32");
      const source = elementsOf(conversion.from, count + first, first);
      for (const offset of [0, 8]) {
        const bytes = pattern(4 * (count + 3) + offset, 1);
        const expected = bytes.slice();
        const { itemsize } = DType.from(from);
        expected.set(convertedOneByOne(source.subarray(first * itemsize), conversion), offset + 12);
        const isDone = convertInPlace(
          stageOf(conversion),
          { bytes: source, offset: 0, layout: layout(itemsize, first) },
          { bytes, offset, layout: destination },
        );
        assertEquals(isDone, true);
        assertEquals(bytes.findIndex((byte, at) => byte !== expected[at]), -1, `${from} ${first} ${offset}`);
      }
    }
  },
);

test("a conversion that reads and writes 128 MiB is made by as many threads as a copy of half of that, no smaller one", () => {
  for (const [from, to] of [["float32", "int32"], ["uint8", "float64"], ["float64", "uint8"]] as const) {
    const stage = stageOf(conversionBetween(from, to));
    const count = Math.ceil(2 ** 27 / (stage.fromBytes + stage.toBytes));
    assertEquals(threadsOf(stage, count), threadsFor({ run: 2 ** 26, runs: 1, isFree: true }));
    assertEquals(threadsOf(stage, count - 1), 1);
  }
});

test("conversions of memory without a stable address are left to other code", () => {
  const layout = (itemsize: number) => StridedLayout.dense([100], itemsize);
  const source = { bytes: new Uint8Array(100), offset: 0, layout: layout(1) };
  const movable = new Uint8Array(new ArrayBuffer(400, { maxByteLength: 800 }));
  const destination = { bytes: movable, offset: 0, layout: layout(4) };
  assertEquals(convertInPlace(stageOf(conversionBetween("uint8", "float32")), source, destination), false);
});
