/**
 * Moves by machine code, on emulated processors of both kinds: this one can run code of one architecture only. The code
 * for this processor is tested with plans, in tests/copy/host_move_test.ts.
 */
import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { aarch64, type Operation, type Unit, x8664 } from "../../src/native/assembler.ts";
import {
  fillProgram,
  gatherProgram,
  isGathered,
  type MoveAxis,
  moveProgram,
  runProgram,
  type StridedMove,
} from "../../src/native/move_programs.ts";
import { jobOf, units } from "../../src/native/strided_mover.ts";
import { missingUnicorn, python } from "../support/emulator.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";

/** Where emulate_call.py puts the code, and the memory. */
const [codeAt, base] = [0x10_0000, 0x30_0000];

/** The size of the memory: bytes behind it must not even be read. */
const mapped = 0x1_0000;

/** Offsets in the memory: the job, the destination and the source, with room on all sides. */
const place = { job: 0, to: 0x800 + 0x400, from: 0x1000 + 0x400, size: 0x1800 };

/** A memcpy that clobbers every register that it need not preserve. */
const memcpy = {
  x86_64: [
    ...[0x48, 0x89, 0xd1], // mov rcx, rdx
    ...[0xf3, 0xa4], // rep movsb
    ...[0x31, 0xc0, 0x31, 0xd2], // xor eax, eax; xor edx, edx
    ...[0x45, 0x31, 0xc0, 0x45, 0x31, 0xc9], // xor r8d, r8d; xor r9d, r9d
    ...[0x45, 0x31, 0xd2, 0x45, 0x31, 0xdb], // xor r10d, r10d; xor r11d, r11d
    0xc3, // ret
  ],
  aarch64: [
    0x38401423, // again: ldrb w3, [x1], #1
    0x38001403, // strb w3, [x0], #1
    0xf1000442, // subs x2, x2, #1
    0x54ffffa1, // b.ne again
    ...[0xd2800004, 0xd2800005, 0xd2800006, 0xd2800007, 0xd2800008], // mov x4 to x8, #0
    0xd2800009, // mov x9, #0
    0xd65f03c0, // ret
  ].flatMap((word) => [word & 255, word >> 8 & 255, word >> 16 & 255, word >>> 24]),
} as const;

const architectures = { x86_64: x8664, aarch64 } as const;

/** Up to five axes of few pieces, anywhere in the room. */
const axes = fc.array(
  fc.record({
    extent: fc.oneof({ weight: 3, arbitrary: fc.integer({ min: 1, max: 3 }) }, {
      weight: 1,
      arbitrary: fc.integer({ min: 4, max: 11 }),
    }),
    to: fc.integer({ min: -40, max: 40 }),
    from: fc.integer({ min: -40, max: 40 }),
  }),
  { maxLength: 5 },
).filter((all) => all.reduce((count, { extent }) => count * extent, 1) <= 250);

const moves: fc.Arbitrary<{ readonly program: readonly Operation[]; readonly move: StridedMove }> = fc.oneof(
  fc.record({ unit: fc.constantFrom(...units), axes }).map(({ unit, axes }) => ({
    program: moveProgram(unit),
    move: { bytes: unit, axes },
  })),
  fc.record({ unit: fc.constantFrom<Unit>(...units), axes }).map(({ unit, axes }) => ({
    program: fillProgram(unit),
    move: {
      bytes: 16,
      element: unit,
      axes: axes.map((axis, i) => i === axes.length - 1 ? { ...axis, from: 0 } : axis),
    },
  })),
  fc.record({
    axes,
    row: fc.record({ extent: fc.integer({ min: 16, max: 50 }), from: fc.integer({ min: -20, max: 20 }) }),
  })
    .map(({ axes, row }) => ({ bytes: 1, axes: [...axes.slice(0, 3), { ...row, to: 1 }] }))
    .filter(({ axes }) => axes.reduce((count, { extent }) => count * extent, 1) < 1000)
    .map((move) => ({ program: gatherProgram, move })),
  fc.record({ bytes: fc.integer({ min: 1, max: 40 }), axes }).filter(({ bytes, axes }) =>
    axes.reduce((count, { extent }) => count * extent, bytes) < 2000 // the emulator takes one step for each
  ).map((move) => ({ program: runProgram, move })),
);

/** The effect of the move, spelled out. */
function movedByHand(memory: Uint8Array, { bytes, element, axes }: StridedMove, start: number): Uint8Array {
  const result = memory.slice();
  const piece = (to: number, from: number) => {
    const read = result.slice(from, from + (element ?? bytes));
    for (let byte = 0; byte < bytes; byte++) result[to + byte] = read[byte % read.length] ?? NaN;
  };
  const walk = (to: number, from: number, [axis, ...rest]: readonly MoveAxis[]): void => {
    if (axis === undefined) return piece(to, from);
    for (let i = 0; i < axis.extent; i++) walk(to + i * axis.to, from + i * axis.from, rest);
  };
  walk(place.to, start, axes);
  return result;
}

/** Whether all pieces lie in the room on their side. */
function fits({ bytes, axes }: StridedMove): boolean {
  return (["to", "from"] as const).every((side) => {
    let [low, high] = [0, bytes];
    for (const axis of axes) {
      const last = (axis.extent - 1) * axis[side];
      if (last < 0) low += last;
      else high += last;
    }
    return low >= -0x3f0 && high <= 0x3f0;
  });
}

interface Case {
  readonly program: readonly Operation[];
  readonly move: StridedMove;
  readonly memory: Uint8Array<ArrayBuffer>;
  /** The offset in it at which the first piece is read. */
  readonly from: number;
}

/** Makes moves on an emulated processor, and checks the memory afterwards. */
function emulate(arch: keyof typeof architectures, all: readonly Case[]): void {
  const cases = all.map(({ program, move, memory, from }) => {
    const code = architectures[arch](program);
    const isUnit = program !== runProgram;
    memory.set(new Uint8Array(jobOf(move, isUnit, BigInt(codeAt + code.length))), place.job);
    const addresses = new DataView(memory.buffer);
    addresses.setBigUint64(place.job, BigInt(base + place.to), true);
    addresses.setBigUint64(place.job + 8, BigInt(base + from), true);
    const both = new Uint8Array([...code, ...memcpy[arch]]);
    return {
      given: { arch, code: both.toHex(), memory: memory.toHex(), arguments: [base + place.job] },
      // The job is unchanged: its counters have been restored.
      expected: { memory: movedByHand(memory, move, from).toHex(), returned: true, preserved: true },
    };
  });
  const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
  const input = JSON.stringify(cases.map(({ given }) => given));
  const { status, stdout, stderr } = spawnSync(python, [script], { input, encoding: "utf8", maxBuffer: 2 ** 28 });
  assertEquals(status, 0, stderr);
  const reports: { memory: string; returned: boolean; preserved: boolean }[] = JSON.parse(stdout);
  assertEquals(reports.length, cases.length);
  reports.forEach(({ memory, returned, preserved }, i) =>
    assertEquals({ memory, returned, preserved }, cases[i]?.expected, JSON.stringify(all[i]?.move))
  );
}

const patternOf = (size: number, seed: number) => new Uint8Array(size).map((_, i) => i * 7 + (i >> 5) + seed);

test("single bytes of a long row that is dense where they are written are gathered", () => {
  const row = (to: number, extent: number) => ({ axes: [{ extent: 3, to: 100, from: 1 }, { extent, to, from: 3 }] });
  assertEquals(isGathered({ bytes: 1, ...row(1, 16) }), true);
  for (const other of [row(1, 15), row(-1, 16), row(2, 16), { axes: [] }]) {
    assertEquals(isGathered({ bytes: 1, ...other }), false);
  }
  assertEquals(isGathered({ bytes: 2, ...row(1, 16) }), false);
  assertEquals(isGathered({ bytes: 1, element: 1, ...row(1, 16) }), false);
});

for (const arch of ["x86_64", "aarch64"] as const) {
  testOnce(
    ...needs(missingUnicorn, `${arch}: machine code moves along any axes, writes nothing else, and can be repeated`),
    () => {
      const several = fc.array(moves.filter(({ move }) => fits(move)), { minLength: 60, maxLength: 60 });
      check(
        fc.property(fc.noShrink(several), fc.nat(255), (all, seed) => {
          const { size, from } = place;
          emulate(arch, all.map((one) => ({ ...one, memory: patternOf(size, seed), from })));
        }),
        4,
      );
    },
  );

  testOnce(...needs(missingUnicorn, `${arch}: machine code reads nothing behind the last element`), () => {
    const last = [{ extent: 3, to: 16, from: 0 }];
    const gathered = { bytes: 1, axes: [{ extent: 35, to: 1, from: 0 }] };
    emulate(arch, [{ program: gatherProgram, move: gathered, memory: patternOf(mapped, 3), from: mapped - 1 }]);
    emulate(
      arch,
      units.flatMap((unit) => {
        const [memory, from] = [patternOf(mapped, unit), mapped - unit];
        return [
          { program: moveProgram(unit), move: { bytes: unit, axes: last }, memory: memory.slice(), from },
          { program: fillProgram(unit), move: { bytes: 16, element: unit, axes: last }, memory, from },
        ];
      }),
    );
  });
}
