/** Unknown PTX is an error when a module is loaded, and whatever stops a kernel on a GPU stops it here. */
import { assertEquals, assertInstanceOf, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { loadPtx, PtxError, PtxFault, type PtxFaultKind } from "../../src/ptx/mod.ts";
import { FlatMemory, launch, place, type Shape } from "../support/ptx/harness.ts";
import { committedPtx } from "../support/ptx/nvrtc.ts";
import { kernelText, runText } from "../support/ptx/text.ts";

/** The line of the first instruction of a body. */
const FIRST = 8;

function refused(body: string, ...said: string[]): void {
  const error = assertThrows(() => loadPtx(kernelText(body)), PtxError);
  assertEquals(error.line, FIRST, error.message);
  for (const part of said) assertStringIncludes(error.message, part);
}

test("an instruction that is not understood is named with its line", () => {
  refused("wgmma.fence.sync.aligned;", "line 8", "wgmma.fence.sync.aligned", "not understood");
  refused("tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%o, {%f0, %f1}];", "tex.2d.v4.f32.f32: this instruction");
  refused("suld.b.1d.b32.trap {%r0}, [%o, {%r1}];", "suld.b.1d.b32.trap: this instruction");
  refused("ld.global.b32 %r0, [%o, {%r1}];", "expected an address in brackets");
  refused("frobnicate;", "frobnicate");
});

test("a modifier that is not understood is named, and none is passed over", () => {
  for (
    const [line, name] of [
      ["add.rn.s32 %r0, %r1, %r2;", ".rn"],
      ["add.s32.wide %r0, %r1, %r2;", ".wide"],
      ["mov.v2.b32 %r0, %r1;", ".v2"],
      ["ld.global.L2::cache_hint.b32 %r0, [%o];", ".L2::cache_hint"],
      ["setp.lt.nand.s32 %p0, %r0, %r1;", ".nand"],
      ["bar.sync.cluster 0;", ".cluster"],
      ["bra.near DONE; DONE:", ".near"],
      ["cvt.rn.satfinite.f16.f32 %h0, %f0;", ".satfinite"],
      ["min.ftz.f64 %d0, %d1, %d2;", ".ftz"],
      ["atom.add.noftz.f32 %f0, [%o], %f1;", ".noftz"],
      ["mul.lo.sat.s32 %r0, %r1, %r2;", ".sat"],
      // ptxas 13.5 refuses these, too.
      ["mad.rn.f16 %h0, %h1, %h2, %h3;", ".f16"],
      ["fma.rn.sat.relu.f16 %h0, %h1, %h2, %h3;", ".relu and .sat"],
      ["ex2.approx.bf16 %h0, %h1;", ".ftz"],
      ["ex2.approx.ftz.f16 %h0, %h1;", ".ftz"],
      ["tanh.approx.ftz.f32 %f0, %f1;", ".ftz"],
      ["abs.ftz.bf16 %h0, %h1;", ".ftz"],
      ["neg.ftz.bf16 %h0, %h1;", ".ftz"],
      ["min.NaN.f64 %d0, %d1, %d2;", ".NaN"],
      ["setp.lt.ftz.bf16 %p0, %h0, %h1;", ".ftz"],
      ["set.lt.ftz.bf16.f32 %h0, %f0, %f1;", ".ftz"],
      ["set.lt.ftz.bf16.bf16 %h0, %h0, %h1;", ".ftz"],
      ["set.lt.f32.f16 %f0, %h0, %h1;", "does not give .f32"],
      ["selp.f16 %h0, %h1, %h2, %p0;", ".f16"],
      ["slct.bf16.s32 %h0, %h1, %h2, %r0;", ".bf16"],
      ["mov.f16 %h0, %h1;", ".f16"],
      ["mov.f16x2 %r0, %r1;", ".f16x2"],
      ["set.lt.f16.bf16 %h0, %h0, %h1;", "does not give .f16"],
      ["set.lt.u16.f32 %h0, %f0, %f1;", "does not give .u16"],
      ["set.lt.f32.f16x2 %f0, %r0, %r1;", "does not give .f32"],
      ["bar.sync.aligned 0;", ".aligned"],
      ["cvt.rn.sat.bf16.f32 %h0, %f0;", ".sat"],
      ["cvt.rn.relu.ftz.f16.f32 %h0, %f0;", ".relu and .ftz"],
      ["cvt.sat.s32.u16 %r0, %h0;", ".sat has no effect"],
      ["cvt.rn.s16x2.f32 %r0, %f0, %f1;", ".s16x2"],
      ["mov.s16x2 %r0, %r1;", ".s16x2"],
      ["mov.u32 %r0, {%h0, %h1};", "not made of parts"],
      ["mov.b8 %h0, %h1;", ".b8"],
      ["add.sat.s16x2 %r0, %r1, %r2;", ".s16x2"],
      ["sub.s16x2 %r0, %r1, %r2;", ".s16x2"],
      ["min.relu.u16x2 %r0, %r1, %r2;", ".relu"],
      ["vabsdiff4.s32.u32.u32 %r0, %r1, %r2, %r3;", ".s32"],
      ["ld.global.f16 %h0, [%o];", ".f16"],
      ["ld.shared.v4.b64 {%d0, %d1, %d2, %d3}, [%d4];", "16 bytes"],
      ["st.local.v8.b32 [%d4], {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7};", "16 bytes"],
      ["ldu.global.v4.b64 {%d0, %d1, %d2, %d3}, [%o];", "16 bytes"],
      ["st.global.v8.b16 [%o], {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7};", "1 registers"],
      ["prefetch.local.L2::evict_last [%o];", ".L1, .L2"],
      ["fma.rna.f32 %f0, %f1, %f2, %f3;", ".rn"],
      ["cvt.rn.satfinite.e4m3x2.f32 %h0, %f0, %f1;", "the type .e4m3x2 is not understood"],
      ["add.f32x2 %d0, %d1, %d2;", "the type .f32x2 is not understood"],
      ["fma.rn.f32x2 %d0, %d1, %d2, %d3;", "the type .f32x2 is not understood"],
    ] as const
  ) refused(line, name);
});

test("operands must fit their instruction", () => {
  refused("add.s32 %r0, %r1;", "operands");
  refused("add.s32 %r0, %r1, %r2, %r3;", "operands");
  refused("add.s32 %d0, %r1, %r2;", "%d0");
  refused("add.s64 %d0, %d1, %r2;", "%r2");
  refused("add.s32 %r99, %r1, %r2;", "%r99");
  refused("add.f32 %f0, %f1, 1;", "integer");
  refused("add.s32 %r0, %r1, 0f3F800000;", "float");
  refused("add.s32 %p0, %r1, %r2;", "%p0");
  refused("@%r0 exit;", "predicate");
  refused("bra NOWHERE;", "NOWHERE");
  refused("ld.global.v4.b32 {%r0, %r1}, [%o];", "4 registers");
  refused("ld.shared.b32 %r0, [nothing];", "nothing is not declared");
  refused("cvt.f16.f32 %h0, %f0;", "expected one of");
  refused("cvt.s32.f32 %r0, %f0;", "expected one of");
  refused("cvt.rzi.s8.bf16 %h0, %h1;", "does not fit .s8");
  refused("cvt.rn.bf16.u8 %h0, %h1;", "does not fit .u8");
  refused("mov.u32 %r0, %nothing;", "%nothing");
  refused("call nobody;", "nobody");
  refused("st.const.b32 [%o], %r0;", "constants");
});

test("directives that are not understood are named", () => {
  const error = assertThrows(() => loadPtx(".version 8.0\n.target sm_90\n.address_size 32\n"), PtxError, "32 bits");
  assertEquals(error.line, 3);
  assertThrows(() => loadPtx(".version 8.0\n.texref t;\n"), PtxError, "line 2");
  assertThrows(() => loadPtx(".version 8.0\n.extern .global .u32 x;\n"), PtxError, "not linked");
  assertThrows(() => loadPtx(".visible .entry k() .reqnctapercluster 2 {\nret;\n}"), PtxError, ".reqnctapercluster");
  refused(".tex .u32 t;", ".tex");
  refused("p: .callprototype (.param .b32 _) _ (.param .b32 _);", "calls through pointers");
  refused("#;");
  assertThrows(() => loadPtx(".visible .entry k() {\nret;\n"), PtxError, "does not end");
});

test("the byte of an address that an initialiser takes must exist, and fit", () => {
  const variable = (type: string, value: string): string =>
    `.version 8.0\n.target sm_90\n.address_size 64\n.global .u32 x;\n.global ${type} y = ${value};`;
  loadPtx(variable(".b8", "0xFF(generic(x))"));
  for (
    const [type, value, said] of [
      [".b8", "0x1FF(generic(x))", "0x1ff does not select"],
      [".b8", "0xFF(0xFF(x))", "a variable's name"],
      [".b8", "0xFF(5)", "a variable's name"],
      [".b8", "generic(x)", "the address of x is no .b8"],
      [".u64", "0xFF(generic(x))", "a byte of the address of x is no .u64"],
    ] as const
  ) {
    const error = assertThrows(() => loadPtx(variable(type, value)), PtxError, said);
    assertEquals(error.line, 5);
  }
});

test("a call must match its function, which must exist", () => {
  const text = (call: string, more = ""): string =>
    `.func (.param .b32 r) f(.param .b32 a) { ret; }
     ${more}
     .visible .entry k() { .param .b32 x; .param .b64 y;
     ${call} ret; }`;
  loadPtx(text("call.uni (x), f, (x);"));
  assertThrows(() => loadPtx(text("call.uni (x), f, (y);")), PtxError, "does not match");
  assertThrows(() => loadPtx(text("call.uni (x), f;")), PtxError, "does not match");
  assertThrows(() => loadPtx(text("call.uni g;", ".extern .func g;")), PtxError, "no body");
});

function fault(kind: PtxFaultKind, run: () => void, ...said: string[]): PtxFault {
  const error = assertThrows(run, PtxFault);
  assertEquals(error.kind, kind, error.message);
  for (const part of said) assertStringIncludes(error.message, part);
  return error;
}

/** Runs a kernel of control.cu on a few words, in many orders. */
function control(name: string, words: readonly number[], shape: Shape, then: (run: () => void) => void): void {
  for (let seed = 0; seed < 10; seed++) {
    const memory = new FlatMemory();
    const address = memory.add(new Int32Array(words));
    const module = loadPtx(committedPtx("control", "sm_90"));
    then(() => launch(module, name, memory, [address], { maxInstructions: 1e5, seed, ...shape }));
  }
}

test("an address outside all allocations stops the kernel and keeps the memory's own error", () => {
  const error = fault(
    "illegal address",
    () => runText("st.global.b32 [%o+4096], %t;", [0]),
    "write of 4 bytes",
    "k",
    "line 8",
  );
  assertInstanceOf(error.cause, RangeError);
  fault("illegal address", () => runText("ld.global.b32 %r0, [16];", [0]), "0x10");
  fault("illegal address", () => runText(".shared .b32 s[2]; ld.shared.b32 %r0, [s+8];", [0]), "8 bytes of shared");
  fault("illegal address", () => runText(".shared .b32 s[2]; ld.shared.v2.b32 {%r0, %r1}, [s+8];", [0]), "shared");
  fault(
    "illegal address",
    () => runText(".local .b32 l[4]; mov.u64 %d0, l; ld.local.b32 %r0, [%d0+65536];", [0]),
    "local",
  );
  fault("illegal address", () => runText("ld.param.b64 %d0, [out+8];", [0]), "parameters");
  fault("illegal address", () => runText("cvta.shared.u64 %d0, %o; ld.b32 %r0, [%d0];", [0]));
});

test("misaligned accesses stop the kernel", () => {
  control("misaligned", [0, 0], { block: [2, 1, 1] }, (run) => fault("misaligned address", run, "thread (1, 0, 0)"));
  fault(
    "misaligned address",
    () => runText("ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%o+8];", [1, 2, 3, 4, 5, 6, 7, 8]),
  );
  fault("misaligned address", () => runText(".shared .align 4 .b8 s[16]; ld.shared.b16 %h0, [s+1];", [0]));
});

test("a barrier that not all threads can reach is a deadlock, with its line", () => {
  const spin = (run: () => void): unknown => fault("instruction limit", run);
  control("half_barrier", [0], { block: [64, 1, 1] }, spin);
  // Exited threads are not waited for.
  control("half_barrier", [1], { block: [64, 1, 1] }, (run) => run());
  const apart = `setp.lt.u32 %p0, %t, 32; @%p0 bra FIRST; bar.sync 1; bra DONE;
    FIRST: bar.sync 2; DONE:`;
  const error = fault(
    "deadlock",
    () => runText(apart, [0], { block: [64, 1, 1], seed: 3 }),
    "32 at barrier 1",
    "32 at barrier 2",
  );
  assertEquals(error.line, FIRST + 1);
  fault("deadlock", () => runText("bar.sync 0, 64;", [0], { block: [32, 1, 1] }), "32 at barrier 0");
});

test("a warp's barrier or shuffle that not all lanes can reach is a deadlock", () => {
  control(
    "lonely_meeting",
    [0, 0],
    { block: [32, 1, 1] },
    (run) => fault("deadlock", run, "shfl.sync.idx.b32", "bar.warp.sync"),
  );
});

test("undefined behaviour is an error", () => {
  const two = "setp.lt.u32 %p0, %t, 7; @%p0 bra A; bar.sync 0; bra DONE; A: bar.sync 0; DONE:";
  fault("undefined behaviour", () => runText(two, [0], { block: [32, 1, 1] }), "one warp");
  runText(two.replaceAll("bar.sync", "barrier.sync"), [0], { block: [32, 1, 1] });
  fault("undefined behaviour", () => runText("vote.sync.any.pred %p0, %p1, 2;", [0]), "leaves out");
  fault("undefined behaviour", () => runText("bar.sync 16;", [0]), "barrier 16");
  fault("undefined behaviour", () => runText("bar.sync 0, 7;", [0]), "7 threads");
  fault("undefined behaviour", () => runText("X: .branchtargets A; brx.idx 1, X; A:", [0]), "entry 1");
});

test("a kernel can stop itself, and recursion without end is a stack overflow", () => {
  control("stop", [1, 2, 9, 4], { block: [4, 1, 1] }, (run) => fault("trap", run, "thread (2, 0, 0)"));
  control("stop", [1, 2, 3, 4], { block: [4, 1, 1] }, (run) => run());
  control("recurse", [40000000], {}, (run) => fault("stack overflow", run, "calls deep"));
});

test("launches that do not fit the kernel are refused", () => {
  const kernel = loadPtx(".visible .entry k(.param .u64 a, .param .u32 b) .maxntid 64, 2, 1 {\nret;\n}").entry("k");
  const valid = {
    grid: [1, 1, 1],
    block: [1, 1, 1],
    params: new Uint8Array(12),
    dynamicSharedBytes: 0,
    memory: new FlatMemory(),
    globals: new Map(),
  } as const;
  assertEquals(kernel?.maxThreads, 128);
  kernel?.run(valid);
  assertThrows(() => kernel?.run({ ...valid, block: [129, 1, 1] }), RangeError, "at most 128 threads, got 129");
  assertThrows(() => kernel?.run({ ...valid, grid: [0, 1, 1] }), RangeError, "got 0");
  assertThrows(() => kernel?.run({ ...valid, params: new Uint8Array(11) }), RangeError, "12 bytes, got 11");
  assertThrows(() => kernel?.run({ ...valid, dynamicSharedBytes: -1 }), RangeError, "got -1");
  const text = ".version 8.0\n.global .u32 x;\n.visible .entry k() {\n.reg .u64 %a; mov.u64 %a, x; ret;\n}";
  assertThrows(
    () => loadPtx(text).entry("k")?.run({ ...valid, params: new Uint8Array() }),
    RangeError,
    "x has no address",
  );
});

test("the driver's own functions are called as the driver declares them", () => {
  const refusedCall = (declared: string, call: string) => {
    const text = `.version 8.0\n.target sm_90\n.address_size 64\n${declared}\n.visible .entry f() {\n` +
      `.param .b64 a;\n.param .b64 b;\n.param .b32 c;\n${call};\n}`;
    assertThrows(() => loadPtx(text), PtxError, "does not match the driver's function of that name");
  };
  const vprintf = ".extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);";
  refusedCall(vprintf, "call (c), vprintf, (a)");
  refusedCall(vprintf, "call vprintf, (a, b)");
  refusedCall(".extern .func __assertfail (.param .b64 x);", "call __assertfail, (a)");
});

test("a module's own function of such a name takes precedence", () => {
  const text = `.version 8.0\n.target sm_90\n.address_size 64
.func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y) { .reg .b32 %a; mov.u32 %a, 77; st.param.b32 [r], %a; ret; }
.visible .entry f(.param .u64 o) {
.reg .b64 %o; .reg .b32 %v; .param .b64 a; .param .b64 b; .param .b32 c;
ld.param.u64 %o, [o]; call (c), vprintf, (a, b); ld.param.b32 %v, [c]; st.global.u32 [%o], %v; ret; }`;
  const memory = new FlatMemory();
  const out = new Int32Array(1);
  launch(loadPtx(text), "f", memory, [memory.add(out)]);
  assertEquals(out[0], 77);
});

test("a launch that follows a failed one fails only for its own faults", () => {
  const module = loadPtx(committedPtx("printing", "sm_90"));
  const memory = new FlatMemory();
  const [good, bad] = [memory.add(new Int32Array([1])), memory.add(new Int32Array([0]))];
  const globals = place(module, memory);
  fault("assertion", () => launch(module, "positive", memory, [bad], {}, globals), "a number");
  launch(module, "positive", memory, [good], {}, globals);
});

test("a launch whose assertion has failed fails for that, whatever its threads do then", () => {
  const assertfail = `.extern .func __assertfail
(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s) .noreturn;
.global .align 1 .b8 text[2] = {65};`;
  const text = (then: string) =>
    `.version 8.0\n.target sm_90\n.address_size 64\n${assertfail}
.visible .entry f() {
.reg .b64 %t; .reg .b32 %r<4>; .reg .pred %p;
mov.u32 %r0, %tid.x; setp.eq.u32 %p, %r0, 0; @!%p bra OTHERS;
mov.u64 %t, text; cvta.global.u64 %t, %t;
{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
st.param.b64 [a], %t; st.param.b64 [b], %t; st.param.b32 [c], 9; st.param.b64 [d], %t; st.param.b64 [e], 1;
call.uni __assertfail, (a, b, c, d, e); }
OTHERS: ${then} ret; }`;
  for (const then of ["", "trap;", "bar.sync 0, 64;", "bar.sync 0;", "L: bra L;", "st.global.u32 [0], %r0;"]) {
    for (let seed = 0; seed < 8; seed++) {
      const memory = new FlatMemory();
      const run = () => launch(loadPtx(text(then)), "f", memory, [], { block: [32, 1, 1], seed });
      if (then !== "trap;" && !then.startsWith("st.")) {
        fault("assertion", run, "Assertion `A` failed in A:9", "thread (0, 0, 0)");
      } else assertThrows(run, PtxFault); // other threads may have stopped the kernel first
    }
  }
});
