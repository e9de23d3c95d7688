/** Cooperating threads: barriers, warps, atomics, jumps through tables. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { loadPtx, PtxFault } from "../../src/ptx/mod.ts";
import { check, fc } from "../support/property.ts";
import { FlatMemory, launch, place } from "../support/ptx/harness.ts";
import { runText } from "../support/ptx/text.ts";

const zeros = (count: number): number[] => Array.from({ length: count }, () => 0);
const seeds = fc.integer();
const warp = { block: [32, 1, 1] } as const;

/** Runs a kernel whose threads each read %r0, then write %r1. */
function lanes(body: string, words: readonly number[], seed: number): number[] {
  const block = [words.length, 1, 1] as const;
  return runText(`ld.global.b32 %r0, [%m]; ${body} st.global.b32 [%m], %r1;`, words, { block, seed });
}

test("shuffles take from the lane that the instruction set says", () => {
  const segments = [[0x1f, 0], [0x1f, 0x18], [0x0f, 0x10], [3, 0x1c], [0, 0]] as const;
  check(
    fc.property(
      fc.array(fc.integer(), { minLength: 64, maxLength: 64 }),
      fc.integer({ min: 0, max: 40 }),
      fc.constantFrom(...segments),
      fc.constantFrom("up", "down", "bfly", "idx"),
      seeds,
      (words, by, [clamp, mask], mode, seed) => {
        const control = (mask << 8) | clamp;
        const actual = lanes(
          `shfl.sync.${mode}.b32 %r1|%p0, %r0, ${by}, ${control}, -1; @!%p0 add.s32 %r1, %r1, 1;`,
          words,
          seed,
        );
        const expected = words.map((_, t) => {
          const lane = t & 31;
          const b = by & 31;
          const max = (lane & mask) | (clamp & ~mask);
          const min = lane & mask;
          const j = mode === "up"
            ? lane - b
            : mode === "down"
            ? lane + b
            : mode === "bfly"
            ? lane ^ b
            : min | (b & ~mask);
          const inside = mode === "up" ? j >= max : j <= max;
          const value = words[(t & 32) + (inside ? j : lane)] ?? 0;
          return inside ? value : (value + 1) | 0;
        });
        assertEquals(actual, expected, `${mode} by ${by}, ${control.toString(16)}`);
      },
    ),
    40,
  );
});

test("reductions, matches and elections over the lanes of a mask", () => {
  const fold: Record<string, (x: number, y: number) => number> = {
    "add.s32": (x, y) => (x + y) | 0,
    "min.s32": (x, y) => Math.min(x, y),
    "max.s32": (x, y) => Math.max(x, y),
    "min.u32": (x, y) => Math.min(x >>> 0, y >>> 0) | 0,
    "max.u32": (x, y) => Math.max(x >>> 0, y >>> 0) | 0,
    "and.b32": (x, y) => x & y,
    "or.b32": (x, y) => x | y,
    "xor.b32": (x, y) => x ^ y,
  };
  check(
    fc.property(fc.array(fc.integer({ min: -4, max: 4 }), { minLength: 32, maxLength: 32 }), seeds, (words, seed) => {
      for (const [name, join] of Object.entries(fold)) {
        const all = words.reduce((x, y) => join(x, y));
        assertEquals(lanes(`redux.sync.${name} %r1, %r0, -1;`, words, seed), words.map(() => all), name);
      }
      const same = (x: number): number => words.reduce((bits, y, i) => bits | (x === y ? 1 << i : 0), 0);
      assertEquals(lanes("match.any.sync.b32 %r1, %r0, -1;", words, seed), words.map(same));
      // Even and odd lanes meet separately.
      const odd = (t: number): number => t & 1 ? 0xaaaaaaaa | 0 : 0x55555555;
      const apart = `and.b32 %r2, %t, 1; setp.eq.s32 %p0, %r2, 1; selp.b32 %r3, 0xaaaaaaaa, 0x55555555, %p0;
        @%p0 bra ODD; vote.sync.ballot.b32 %r1, %p0, %r3; bra DONE;
        ODD: vote.sync.ballot.b32 %r1, %p0, %r3; DONE:`;
      assertEquals(lanes(apart, words, seed), words.map((_, t) => t & 1 ? odd(t) : 0));
      const elected = "elect.sync %r1|%p0, -256; @%p0 add.s32 %r1, %r1, 100;";
      const upper = `setp.lt.u32 %p1, %t, 8; mov.u32 %r1, 0; @%p1 bra DONE; ${elected} DONE:`;
      assertEquals(lanes(upper, words, seed), words.map((_, t) => t < 8 ? 0 : t === 8 ? 108 : 8));
    }),
    8,
  );
});

test("a lane that has ended is not waited for", () => {
  const body = "setp.gt.u32 %p0, %t, 9; @%p0 exit; setp.gt.s32 %p1, %r0, 0; vote.sync.ballot.b32 %r1, %p1, -1;";
  check(
    fc.property(seeds, (seed) => {
      const words = Array.from({ length: 32 }, (_, i) => i % 3);
      assertEquals(lanes(body, words, seed), words.map((x, t) => t > 9 ? x : 0b0110110110));
    }),
    8,
  );
});

test("barriers reduce the values of threads, and named barriers let producers continue", () => {
  check(
    fc.property(fc.array(fc.boolean(), { minLength: 64, maxLength: 64 }), seeds, (bits, seed) => {
      const count = bits.filter(Boolean).length;
      const body = (line: string): string =>
        `setp.ne.s32 %p0, %r0, 0; mov.u32 %r1, 0; ${line.includes("popc") ? line : `${line} @%p1 mov.u32 %r1, 1;`}`;
      const words = bits.map(Number);
      assertEquals(lanes(body("bar.red.popc.u32 %r1, 0, %p0;"), words, seed), words.map(() => count));
      assertEquals(lanes(body("bar.red.and.pred %p1, 1, %p0;"), words, seed), words.map(() => Number(count === 64)));
      assertEquals(lanes(body("bar.red.or.pred %p1, 2, 64, !%p0;"), words, seed), words.map(() => Number(count < 64)));
      // The first warp writes and arrives; the second waits and reads the first's words.
      const pipe = `.shared .b32 s[32]; setp.ge.u32 %p0, %t, 32; mov.u32 %r2, s; and.b32 %r3, %t, 31;
        mad.lo.u32 %r2, %r3, 4, %r2; mov.u32 %r1, 7; @%p0 bra SECOND;
        add.s32 %r4, %r0, 5; st.shared.b32 [%r2], %r4; bar.arrive 3, 64; bra DONE;
        SECOND: bar.sync 3, 64; ld.shared.b32 %r1, [%r2]; DONE:`;
      assertEquals(lanes(pipe, words, seed), words.map((_, t) => t < 32 ? 7 : (words[t - 32] ?? 0) + 5));
    }),
    8,
  );
});

test("barriers separate what comes before from what comes after, again and again", () => {
  check(
    fc.property(fc.integer({ min: 1, max: 96 }), seeds, (threads, seed) => {
      // Rotates the words of shared memory by one place, five times.
      const body = `.shared .b32 s[96]; mov.u32 %r5, 0; mov.u32 %r2, s; mad.lo.u32 %r2, %t, 4, %r2;
        mov.u32 %r6, %ntid.x; add.s32 %r7, %t, 1; rem.u32 %r7, %r7, %r6; mov.u32 %r8, s; mad.lo.u32 %r8, %r7, 4, %r8;
        st.shared.b32 [%r2], %r0;
        AGAIN: bar.sync 0; ld.shared.b32 %r1, [%r8]; bar.sync 0; st.shared.b32 [%r2], %r1;
        add.s32 %r5, %r5, 1; setp.lt.s32 %p0, %r5, 5; @%p0 bra AGAIN;`;
      const words = Array.from({ length: threads }, (_, i) => i * 3);
      assertEquals(lanes(body, words, seed), words.map((_, t) => ((t + 5) % threads) * 3));
    }),
    20,
  );
});

test("atomics return each old value once and leave the result of all of them", () => {
  const operations: [string, number, (old: number) => number][] = [
    ["add.u32", 3, (old) => old + 3],
    ["inc.u32", 5, (old) => old >= 5 ? 0 : old + 1],
    ["dec.u32", 5, (old) => old === 0 || old > 5 ? 5 : old - 1],
    ["max.s32", 4, (old) => Math.max(old, 4)],
    ["min.s32", -4, (old) => Math.min(old, -4)],
    ["and.b32", 6, (old) => old & 6],
    ["or.b32", 9, (old) => old | 9],
    ["xor.b32", 9, (old) => old ^ 9],
    ["exch.b32", 8, () => 8],
  ];
  for (const space of ["global", "shared"]) {
    for (const [name, operand, next] of operations) {
      check(
        fc.property(fc.integer({ min: -9, max: 9 }), seeds, (start, seed) => {
          const at = space === "global" ? "%o" : "s";
          const body = `.shared .b32 s; setp.eq.u32 %p0, %t, 0; ld.global.b32 %r0, [%o];
            @%p0 st.shared.b32 [s], %r0; bar.sync 0; atom.${space}.${name} %r1, [${at}], ${operand};
            st.global.b32 [%m+4], %r1; bar.sync 0; ld.${space}.b32 %r2, [${at}]; @%p0 st.global.b32 [%o], %r2;`;
          const [last = 0, ...olds] = runText(body, [start, ...zeros(32)], { ...warp, seed });
          const expected: number[] = [];
          let value = start;
          for (let i = 0; i < 32; i++) {
            expected.push(value | 0);
            // As unsigned words for unsigned types.
            value = (name.endsWith("u32") ? next(value >>> 0) : next(value)) | 0;
          }
          assertEquals(last, value, name);
          assertEquals(olds.toSorted(), expected.toSorted(), name);
        }),
        4,
      );
    }
  }
});

test("atomic sums of floats flush tiny numbers in device memory alone", () => {
  const tiny = 0x00400000; // 2^-127
  const body = (space: string, at: string): string =>
    `.shared .b32 s; st.shared.b32 [s], ${tiny}; mov.b32 %f1, ${tiny}; atom.${space}.add.f32 %f0, [${at}], %f1;
    ld.${space}.b32 %r1, [${at}]; st.global.b32 [%o+4], %r1;`;
  assertEquals(runText(body("shared", "s"), [0, 0])[1], 2 * tiny);
  assertEquals(runText(body("global", "%o"), [tiny, 0])[1], 0);
  const pairs =
    "mov.b32 %r0, 0x3c003c00; red.global.add.noftz.f16x2 [%o], %r0; red.global.add.noftz.bf16x2 [%o+4], %r0;";
  assertEquals(runText(pairs, [0x40003c00, 0]), [0x42004000, 0x3c003c00]);
});

test("atomics of 64 bits, and compare-and-swap of all widths", () => {
  const body = `mov.b64 %d0, 0x100000002; atom.global.add.u64 %d1, [%o], %d0; st.global.b64 [%o+8], %d1;
    atom.global.cas.b64 %d2, [%o], 0x100000001, 7; atom.global.cas.b32 %r0, [%o+8], -1, 5;
    mov.u16 %h1, 6; mov.u16 %h2, 9; atom.global.cas.b16 %h0, [%o+16], %h1, %h2; atom.global.max.s64 %d3, [%o+24], -3;
    mov.f64 %d4, 0d3FF8000000000000; red.global.add.f64 [%o+32], %d4;`;
  const words = runText(body, [-1, 0, 0, 0, 0x50006, 0, -9, -1, 0, 0x3ff80000]);
  // 0xffffffff + 0x100000002 = 0x200000001, which the first swap does not change.
  assertEquals(words, [1, 2, 5, 0, 0x50009, 0, -3, -1, 0, 0x40080000]);
});

test("a table determines the target of a jump", () => {
  const body = `ld.global.b32 %r0, [%m]; mov.u32 %r1, 0; TABLE: .branchtargets A, B, C; brx.idx %r0, TABLE;
    A: add.s32 %r1, %r1, 1; B: add.s32 %r1, %r1, 10; C: add.s32 %r1, %r1, 100; st.global.b32 [%m], %r1;`;
  assertEquals(runText(body, [0, 1, 2, 1], { block: [4, 1, 1] }), [111, 110, 100, 110]);
});

test("generic addresses reach shared, local and device memory", () => {
  const body = `.shared .b32 s[4]; .local .b32 l[4]; mov.u64 %d0, s; cvta.shared.u64 %d0, %d0; mov.u64 %d1, l;
    cvta.local.u64 %d1, %d1; mov.u32 %r0, 5; st.b32 [%d0+4], %r0; mov.u32 %r1, 6; st.b32 [%d1+8], %r1;
    ld.shared.b32 %r2, [s+4]; ld.local.b32 %r3, [l+8]; st.b32 [%o], %r2; st.b32 [%o+4], %r3;
    isspacep.shared %p0, %d0; isspacep.shared %p1, %d1; isspacep.global %p2, %o; cvta.to.shared.u64 %d3, %d0;
    cvt.u32.u64 %r7, %d3; ld.shared.b32 %r8, [%r7+4]; selp.b32 %r4, 1, 0, %p0; selp.b32 %r5, 1, 0, %p1;
    selp.b32 %r6, 1, 0, %p2; st.global.v4.b32 [%o+16], {%r4, %r5, %r6, %r8};`;
  assertEquals(runText(body, zeros(8)), [5, 6, 0, 0, 1, 0, 1, 5]);
});

test("addresses of 32 bits wrap around", () => {
  // As NVRTC writes the address of s[a - b] for sm_100: below zero in the register, and then an offset.
  const body = `.shared .b32 s[4]; .local .b32 l[4]; mov.b32 %r0, s; sub.s32 %r0, %r0, 400; mov.b32 %r1, 5;
    st.shared.b32 [%r0+404], %r1; ld.shared.b32 %r2, [s+4]; mov.b32 %r3, l; sub.s32 %r3, %r3, 16;
    st.local.b32 [%r3+24], %r1; ld.local.b32 %r4, [l+8]; ld.shared.b32 %r5, [%r0+404]; mov.b32 %r6, 8;
    ld.shared.b32 %r7, [%r6+-4]; st.global.v4.b32 [%o], {%r2, %r4, %r5, %r7};`;
  assertEquals(runText(body, zeros(4)), [5, 5, 5, 5]);
});

test("local variables are aligned as declared, in every call", () => {
  const module = loadPtx(`.version 8.0
    .target sm_90
    .address_size 64
    .func (.param .b64 r) where(.param .b64 down) {
      .reg .b64 %d<5>; .reg .pred %p; .local .b8 c[1]; .local .align 64 .b8 l[100]; .param .b64 x; .param .b64 y;
      ld.param.b64 %d0, [down]; mov.b64 %d1, l; cvta.local.u64 %d1, %d1; st.b64 [%d1+56], %d0;
      setp.eq.b64 %p, %d0, 0; @%p bra DONE; sub.s64 %d2, %d0, 1; st.param.b64 [x], %d2;
      call (y), where, (x); ld.param.b64 %d3, [y]; ld.b64 %d4, [%d1+56]; sub.s64 %d4, %d4, %d0; add.s64 %d3, %d3, %d4;
      or.b64 %d1, %d1, %d3;
      DONE: and.b64 %d1, %d1, 63; st.param.b64 [r], %d1; ret;
    }
    .visible .entry k(.param .b64 out) {
      .reg .b64 %d<4>; .param .b64 x; .param .b64 y; .local .b8 c[3]; st.param.b64 [x], 9; st.local.b8 [c], 1;
      call (y), where, (x); ld.param.b64 %d0, [y]; ld.param.b64 %d1, [out]; st.global.b64 [%d1], %d0; ret;
    }`);
  const memory = new FlatMemory();
  const result = new BigInt64Array([-1n]);
  launch(module, "k", memory, [memory.add(result)]);
  assertEquals(result[0], 0n);
});

test("registers are split and combined", () => {
  const body = `mov.u32 %r0, 0x12345678; mov.b32 {%h0, %h1}, %r0; mov.b32 %r1, {%h1, %h0}; mov.b64 %d0, {%r0, %r1};
    mov.b64 {%r3, %r2}, %d0; mov.b64 {%h2, %h3, %h4, %h5}, %d0; mov.b32 %r4, {%h5, %h4}; mov.b64 {%r0, %r5}, %d0;
    mov.b64 {_, %r6}, %d0; st.global.v4.b32 [%o], {%r1, %r2, %r3, %r4}; st.global.v2.b32 [%o+16], {%r5, %r6};`;
  const [x, y] = [0x12345678, 0x56781234];
  assertEquals(runText(body, zeros(6)), [y, y, x, x, y, y]);
});

test("registers of 8 bits are parts of wider ones", () => {
  // So __half2char_rz of cuda_fp16.h ends: its header has both of the first two lines.
  const body = `.reg .b8 %b<4>; cvt.rzi.s8.f16 %b0, %h0; mov.b16 %h1, {%b0, 0}; cvt.s32.s8 %r0, %h1;
    ld.global.b32 %r1, [%o]; mov.b32 {%b1, %b2, %b3, %b0}, %r1; mov.b32 %r2, {%b0, %b3, %b2, %b1};
    mov.b32 {%h2, %h3}, %r1; mov.b16 {%b1, %b2}, %h2; mov.b16 %h3, {%b2, %b1}; cvt.u32.u16 %r3, %h3;
    st.global.v2.b32 [%o+8], {%r2, %r3}; st.global.b32 [%o], %r0;`;
  const [quotient, , reversed, swapped] = runText(`mov.b16 %h0, 0xc540; ${body}`, [0x12fedc80, 0, 0, 0]);
  assertEquals([quotient, reversed, swapped], [-5, 0x80dcfe12 | 0, 0x80dc]);
});

test("loads of small types fill wide registers with zeros or the sign", () => {
  const body = `ld.global.s8 %r0, [%o]; ld.global.u8 %r1, [%o]; ld.global.s16 %r2, [%o]; ld.global.u16 %d0, [%o];
    ld.global.s8 %d1, [%o]; ld.global.s32 %d2, [%o]; ld.global.s8 %h0, [%o]; cvt.u32.u16 %r6, %h0;
    shr.u64 %d3, %d1, 32; cvt.u32.u64 %r3, %d3; shr.u64 %d3, %d2, 32; cvt.u32.u64 %r4, %d3; cvt.u32.u64 %r5, %d0;
    st.global.v4.b32 [%o+16], {%r0, %r1, %r2, %r3}; st.global.v4.b32 [%o+32], {%r4, %r5, %r6, %r0};`;
  const [, , , , ...rest] = runText(body, [0x8000fe80 | 0, ...zeros(11)]);
  assertEquals(rest, [-128, 0x80, -384, -1, -1, 0xfe80, 0xff80, -128]);
});

test("device memory is accessed in up to 32 bytes, also by generic addresses", () => {
  const registers = [0, 1, 2, 3, 4, 5, 6, 7].map((i) => `%r${i}`);
  for (const space of [".global", ""]) {
    const body = `ld${space}.v8.b32 {${registers}}, [%o]; ld${space}.v4.b64 {%d0, %d1, %d2, %d3}, [%o];
      st${space}.v8.b32 [%o+32], {${registers.toReversed()}}; st${space}.v4.b64 [%o+64], {%d3, %d2, %d1, %d0};`;
    const words = [1, 2, 3, 4, 5, 6, 7, 8];
    const swapped = [7, 8, 5, 6, 3, 4, 1, 2];
    assertEquals(runText(body, [...words, ...zeros(16)]), [...words, ...words.toReversed(), ...swapped]);
    assertThrows(() => runText(`ld${space}.v8.b32 {${registers}}, [%o+16];`, zeros(12)), PtxFault, "32 bytes");
  }
});

test("special registers say where a thread is", () => {
  const body = `mov.u32 %r0, %tid.y; mov.u32 %r1, %ntid.x; mad.lo.u32 %r0, %r0, %r1, %t; mov.u32 %r2, %tid.z;
    mov.u32 %r3, %ntid.y; mul.lo.u32 %r3, %r3, %r1; mad.lo.u32 %r0, %r2, %r3, %r0; shl.b32 %r4, %r0, 5;
    cvt.u64.u32 %d0, %r4; add.u64 %d0, %d0, %o; mov.u32 %r5, %laneid; mov.u32 %r6, %warpid; mov.u32 %r7, %lanemask_lt;
    mov.u32 %r8, %lanemask_ge; mov.u32 %r9, %nctaid.z; mov.u32 %r10, %dynamic_smem_size; mov.u32 %r11, %lanemask_gt;
    mov.u32 %r12, %lanemask_le;
    st.global.v4.b32 [%d0], {%r5, %r6, %r7, %r8}; st.global.v4.b32 [%d0+16], {%r9, %r10, %r11, %r12};`;
  const words = runText(body, zeros(3 * 4 * 5 * 8), { block: [3, 4, 5], shared: 48, seed: 4 });
  for (let i = 0; i < 60; i++) {
    const lane = i % 32;
    const [lt, ge] = [2 ** lane - 1, ~(2 ** lane - 1)];
    const expected = [lane, i >> 5, lt | 0, ge | 0, 1, 48, ge & ~(1 << lane), lt | (1 << lane)];
    assertEquals(words.slice(8 * i, 8 * i + 8), expected);
  }
});

test("variables that hold the addresses of others report it", () => {
  const module = loadPtx(`.version 8.0
    .target sm_90
    .address_size 64
    .global .align 4 .u32 one[3] = {1, 2, 3};
    .global .align 8 .u64 two[2] = {generic(one)+4, 0};
    .const .align 8 .f64 three = 0d3FF0000000000000;
    .global .align 4 .f32 four[2] = {0f40000000, -1.5};`);
  assertEquals(module.globals.get("two")?.relocations, [{ offset: 0, symbol: "one", addend: 4n }]);
  assertEquals([...new Float64Array(module.globals.get("three")?.init.buffer ?? new ArrayBuffer(0))], [1]);
  assertEquals([...new Float32Array(module.globals.get("four")?.init.buffer ?? new ArrayBuffer(0))], [2, -1.5]);
  const memory = new FlatMemory();
  const globals = place(module, memory);
  const { bytes, offset } = memory.view(globals.get("two") ?? 0n, 8, "read");
  assertEquals(bytes.getBigUint64(offset, true), (globals.get("one") ?? 0n) + 4n);
});

test("a packed structure has the bytes of an address one by one", () => {
  const byte = (i: number): string => `0xFF${"00".repeat(i)}(${i % 2 === 0 ? "generic(one)" : "one"}+4)`;
  const module = loadPtx(`.version 8.0
    .target sm_90
    .address_size 64
    .global .align 4 .u32 one[3];
    .global .align 1 .u8 packed[10] = {3, ${[0, 1, 2, 3, 4, 5, 6, 7].map(byte)}, 9};`);
  const memory = new FlatMemory();
  const globals = place(module, memory);
  const { bytes, offset } = memory.view(globals.get("packed") ?? 0n, 1, "read");
  assertEquals(bytes.getBigUint64(offset + 1, true), (globals.get("one") ?? 0n) + 4n);
  assertEquals([bytes.getUint8(offset), bytes.getUint8(offset + 9)], [3, 9]);
});

test("every variable of a declaration has the lanes that it gives", () => {
  const { globals } = loadPtx(".version 8.0\n.global .v4 .f32 a, b[2];\n.global .align 32 .v2 .u64 c, d;");
  assertEquals([...globals].map(([name, { size, align }]) => [name, size, align]), [
    ["a", 16, 16],
    ["b", 32, 16],
    ["c", 16, 32],
    ["d", 16, 32],
  ]);
});
