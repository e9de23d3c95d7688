/**
 * The machine code that calls a Python function, on emulated processors: which functions it calls with what, what it
 * returns, and what it preserves. The functions are a few hand-written instructions that record their arguments.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { currentStreamCode } from "../../src/python/current_stream_thunk.ts";
import { exitCode } from "../../src/python/exit_thunk.ts";
import { aarch64Call, x8664Call } from "../../src/python/python_call_thunk.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { aarch64ReleaseLock, releaseLockAtThreadEnd, x8664ReleaseLock } from "../../src/python/thread_end.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const found = findPython("unicorn");
const missing = typeof found === "string" ? found : null;

/** Where emulate_call.py puts the memory. */
const base = 0x30_0000n;

/** Functions of the interpreter: where each stub lies in the memory, and where it writes. */
const names = ["PyLong_FromVoidPtr", "PyObject_CallFunctionObjArgs", "PyLong_AsVoidPtr", "Py_DecRef"] as const;
const stubAt = (index: number) => 0x1000 + 0x100 * index;
const logAt = (index: number) => 0x2000 + 0x100 * index;
const outAt = 0x3000;

const word = (value: bigint) => [...new Uint8Array(BigUint64Array.of(value).buffer)];

/**
 * Adds up its arguments, counts its calls, records whether the stack is aligned, clobbers the registers that it may,
 * and returns a value.
 */
const stubs = {
  x86_64: (log: bigint, result: bigint) => [
    ...[0x48, 0xb8, ...word(log)], // movabs rax, log
    ...[0x48, 0x01, 0x38], // add [rax], rdi
    ...[0x48, 0x89, 0x70, 0x08], // mov [rax + 8], rsi
    ...[0x48, 0x89, 0x50, 0x10], // mov [rax + 16], rdx
    ...[0x48, 0xff, 0x40, 0x18], // inc qword [rax + 24]
    ...[0x48, 0x89, 0xe1, 0x83, 0xe1, 0x0f], // mov rcx, rsp; and ecx, 15
    ...[0x48, 0x83, 0xf1, 0x08, 0x48, 0x09, 0x48, 0x20], // xor rcx, 8; or [rax + 32], rcx: 0 if aligned before the call
    ...[0x48, 0xc7, 0xc7, 0xff, 0xff, 0xff, 0xff, 0x48, 0x89, 0xfe, 0x48, 0x89, 0xfa, 0x49, 0x89, 0xfb], // rdi, rsi, rdx, r11: -1
    ...[0x48, 0xb8, ...word(result), 0xc3], // movabs rax, result; ret
  ],
  aarch64: (log: bigint, result: bigint) => {
    const code = [
      0x58000000 | 16 << 5 | 9, // ldr x9, log
      0xf940012a, // ldr x10, [x9]
      0x8b00014a, // add x10, x10, x0
      0xf900012a, // str x10, [x9]
      0xf9000521, // str x1, [x9, #8]
      0xf9000922, // str x2, [x9, #16]
      0xf9400d2a, // ldr x10, [x9, #24]
      0x9100054a, // add x10, x10, #1
      0xf9000d2a, // str x10, [x9, #24]
      0x910003ea, // mov x10, sp
      0x92400d4a, // and x10, x10, #15
      0xf900112a, // str x10, [x9, #32]
      0x92800001, // mov x1, #-1
      0xaa0103f0, // mov x16, x1
      0x58000000 | 4 << 5 | 0, // ldr x0, result
      0xd65f03c0, // ret
    ];
    return [...new Uint8Array(Uint32Array.from(code).buffer), ...word(log), ...word(result)];
  },
} as const;

interface Report {
  readonly memory: string;
  readonly result: string;
  readonly returned: boolean;
  readonly preserved: boolean;
}

function emulate(cases: readonly object[]): Report[] {
  const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
  const python = typeof found === "string" ? "" : found.executable;
  const { status, stdout, stderr } = spawnSync(python, [script], {
    input: JSON.stringify(cases),
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  });
  assertEquals(status, 0, stderr);
  return JSON.parse(stdout);
}

const hex = (code: Uint8Array) => Buffer.from(code).toString("hex");
const address = fc.bigInt({ min: 1n, max: (1n << 64n) - 1n });

for (const [arch, encode] of [["x86_64", x8664Call], ["aarch64", aarch64Call]] as const) {
  testOnce(...needs(missing, `${arch}: the code calls, releases what it received, and returns 0 or -1`), () => {
    const cases = fc.record({
      given: fc.nat(0x7fff_ffff),
      callable: address,
      number: fc.oneof(fc.constant(0n), address),
      returned: fc.oneof(fc.constant(0n), address),
      value: fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
    });
    check(
      fc.property(fc.noShrink(fc.array(cases, { minLength: 40, maxLength: 40 })), (all) => {
        const made = all.map(({ given, callable, number, returned, value }) => {
          const memory = Buffer.alloc(0x4000, 0);
          [number, returned, value, 0xdeadn].forEach((result, i) => {
            memory.set(stubs[arch](base + BigInt(logAt(i)), result), stubAt(i));
          });
          memory.writeBigUInt64LE(0x1234n, outAt);
          const at = Object.fromEntries(names.map((name, i) => [name, base + BigInt(stubAt(i))]));
          const code = encode({ ...at, callable } as Parameters<typeof encode>[0]); // all of the names
          return { arch, memory: hex(memory), code: hex(code), arguments: [given, Number(base) + outAt] };
        });
        emulate(made).forEach(({ memory, result, returned: isBack, preserved }, i) => {
          const one = all[i] ?? { given: 0, callable: 0n, number: 0n, returned: 0n, value: 0n };
          const after = Buffer.from(memory, "hex");
          const log = (index: number) => [0, 8, 16, 24, 32].map((at) => after.readBigUInt64LE(logAt(index) + at));
          const [failsAtOnce, fails] = [one.number === 0n, one.number === 0n || one.returned === 0n];
          assertEquals([isBack, preserved, BigInt.asIntN(32, BigInt(result))], [true, true, fails ? -1n : 0n]);
          assertEquals(after.readBigUInt64LE(outAt), fails ? 0x1234n : one.value);
          const [from, call, as, drop] = names.map((_, index) => log(index));
          assertEquals([from?.[0], from?.[3], from?.[4]], [BigInt(one.given), 1n, 0n]);
          assertEquals(call, failsAtOnce ? [0n, 0n, 0n, 0n, 0n] : [one.callable, one.number, 0n, 1n, 0n]);
          assertEquals([as?.[0], as?.[3], as?.[4]], fails ? [0n, 0n, 0n] : [one.returned, 1n, 0n]);
          const dropped = BigInt.asUintN(64, failsAtOnce ? 0n : fails ? one.number : one.number + one.returned);
          assertEquals([drop?.[0], drop?.[3]], [dropped, failsAtOnce ? 0n : fails ? 1n : 2n]);
          assertEquals(drop?.[4], 0n);
        });
      }),
      3,
    );
  });

  testOnce(
    ...needs(
      missing,
      `${arch}: work on a CUDA device goes to the stream in its word, or the legacy one, elsewhere to none`,
    ),
    () => {
      const [wordsAt, count] = [0x2000, 64];
      // The emulator passes two arguments: the third is set by code for the caller.
      const out = Number(base) + outAt;
      const before = arch === "x86_64"
        ? [0x48, 0xc7, 0xc2, ...new Uint8Array(Uint32Array.of(out).buffer)] // mov rdx, out
        : [
          ...new Uint8Array(Uint32Array.of(0xd2a00002 | (out >>> 16) << 5, 0xf2800002 | (out & 0xffff) << 5).buffer), // x2
        ];
      const code = hex(Uint8Array.from([...before, ...currentStreamCode[arch](base + BigInt(wordsAt), count)]));
      const memory = Buffer.alloc(0x4000, 0xff);
      const handle = (device: number) => 0xfeed_0000_0000_0001n + BigInt(device);
      for (let device = 0; device < count; device++) memory.writeBigUInt64LE(handle(device), wordsAt + 8 * device);
      const cases = [0, 1, 2, 3, 10, 13, 2 ** 31 - 1].flatMap((type) =>
        [0, 3, count - 1, count, 2 ** 31 - 1, 2 ** 32 - 1].map((device) => [type, device] as const)
      );
      emulate(cases.map((args) => ({ arch, code, memory: hex(memory), arguments: args }))).forEach((report, i) => {
        const after = Buffer.from(report.memory, "hex");
        assertEquals([report.returned, report.preserved, BigInt.asIntN(32, BigInt(report.result))], [true, true, 0n]);
        const [type, device] = cases[i] ?? [0, 0];
        const expected = type !== 2 ? 0n : device < count ? handle(device) : 1n;
        assertEquals(after.readBigUInt64LE(outAt), expected, `type ${type}, device ${device}`);
      });
    },
  );
}

for (const [arch, encode] of [["x86_64", x8664ReleaseLock], ["aarch64", aarch64ReleaseLock]] as const) {
  testOnce(...needs(missing, `${arch}: a thread that ends releases the lock, once, if it holds it`), () => {
    const [holds, drops] = [0, 1].map((i) => base + BigInt(stubAt(i))) as [bigint, bigint];
    const cases = [0n, 1n].map((held) => {
      const memory = Buffer.alloc(0x4000, 0);
      memory.writeBigUInt64LE(holds, outAt);
      memory.writeBigUInt64LE(drops, outAt + 8);
      memory.set(stubs[arch](base + BigInt(logAt(0)), held), stubAt(0));
      memory.set(stubs[arch](base + BigInt(logAt(1)), 0xdeadn), stubAt(1));
      return { arch, memory: hex(memory), code: hex(encode()), arguments: [Number(base) + outAt] };
    });
    emulate(cases).forEach(({ memory, returned, preserved }, held) => {
      const after = Buffer.from(memory, "hex");
      const log = (index: number) => [0, 24, 32].map((at) => after.readBigUInt64LE(logAt(index) + at));
      assertEquals([returned, preserved], [true, true]);
      assertEquals(log(0).slice(1), [1n, 0n]);
      assertEquals(log(1), held === 0 ? [0n, 0n, 0n] : [1n, 1n, 0n]); // PyGILState_UNLOCKED, on an aligned stack
    });
  });
}

for (const arch of ["x86_64", "aarch64"] as const) {
  testOnce(
    ...needs(missing, `${arch}: a process that exits ends at once while calls are made, with its status`),
    () => {
      const cases = [0, 1, 32, 2 ** 32].flatMap((calls) =>
        [0, 1, 255].map((status) => {
          const memory = Buffer.alloc(0x4000, 0);
          memory.writeBigUInt64LE(BigInt(calls), outAt);
          memory.writeBigUInt64LE(base + BigInt(stubAt(0)), outAt + 8);
          memory.set(stubs[arch](base + BigInt(logAt(0)), 0n), stubAt(0)); // _exit(), which returns here
          const given = [status, Number(base) + outAt];
          return { calls, status, arch, memory: hex(memory), code: hex(exitCode[arch]()), arguments: given };
        })
      );
      emulate(cases).forEach(({ memory, returned, preserved }, i) => {
        const after = Buffer.from(memory, "hex");
        const { calls = 0, status = 0 } = cases[i] ?? {};
        assertEquals([returned, preserved], [true, true]);
        const log = [0, 24, 32].map((at) => after.readBigUInt64LE(logAt(0) + at));
        assertEquals(log, calls === 0 ? [0n, 0n, 0n] : [BigInt(status), 1n, 0n]);
      });
    },
  );
}

test("where machine code is refused a Worker is refused Python, at once", () => {
  assertThrows(() => releaseLockAtThreadEnd(0n, () => null), FfiError, "Use it on the main thread");
});
