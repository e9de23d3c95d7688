import { assert, assertEquals, assertStrictEquals, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream, ArrowSchema } from "../../bindings/arrow.ts";
import { DLManagedTensor, DLManagedTensorVersioned } from "../../bindings/dlpack.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { libc } from "../../src/ffi/libc.ts";
import { type FfiPort, ffiPort } from "../../src/ffi/port.ts";
import {
  aarch64Thunk,
  callbacks,
  portOfMainThread,
  type ReleaseThunks,
  releaseThunks,
  type ThunkShape,
  x8664Thunk,
} from "../../src/native/release_thunk.ts";
import { assembleHere } from "../../src/native/assembler.ts";
import { runCode } from "../../src/native/run_code.ts";
import { layoutOf } from "../../src/ffi/struct.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { testOnce } from "../support/once.ts";
import { check, fc, scaled } from "../support/property.ts";
import { needs } from "../support/needs.ts";
import { runScriptForJson } from "../support/child.ts";
import { compiled, missingCompiler } from "../support/compiled.ts";
import { missingUnicorn, python } from "../support/emulator.ts";

type Protocol = keyof ReleaseThunks["address"];

/** From the protocols' headers: the size, the offset of the context, and of the field that marks "released". */
const protocols: { readonly [Name in Protocol]: { size: number; context: number; clear: number | null } } = {
  DLManagedTensor: { size: 64, context: 48, clear: null },
  DLManagedTensorVersioned: { size: 80, context: 8, clear: null },
  ArrowSchema: { size: 72, context: 64, clear: 56 },
  ArrowArray: { size: 80, context: 72, clear: 64 },
  ArrowArrayStream: { size: 40, context: 32, clear: 24 },
  ArrowDeviceArrayStream: { size: 48, context: 40, clear: 32 },
};
const names = Object.keys(protocols) as Protocol[];

const release = { args: ["ptr"], returns: "void" } as const;

/** A struct with random content, and a counter with any initial value. */
const releases = fc.record({
  name: fc.constantFrom(...names),
  content: fc.uint8Array({ minLength: 80, maxLength: 80 }),
  start: fc.oneof(fc.constantFrom(0, -1, 2 ** 31 - 1, -(2 ** 31)), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
  calls: fc.integer({ min: 1, max: 5 }),
});

test("the structs are those that the protocols' headers define", () => {
  const structs = {
    DLManagedTensor,
    DLManagedTensorVersioned,
    ArrowSchema,
    ArrowArray,
    ArrowArrayStream,
    ArrowDeviceArrayStream,
  };
  for (const name of names) assertEquals(layoutOf(structs[name]).size, protocols[name].size, name);
});

for (const [kind, thunks] of [["this process's", releaseThunks], ["JavaScript", () => callbacks(ffiPort())]] as const) {
  test(`${kind} release callbacks count, clear the field that the protocol names, and touch nothing else`, () => {
    const { address } = thunks();
    assertEquals(Object.keys(address), names);
    check(
      fc.property(releases, ({ name, content, start, calls }) => {
        using arena = new NativeArena();
        const { size, context, clear } = protocols[name];
        const counters = arena.bytes(24);
        counters.bytes.fill(0xee);
        const count = new DataView(counters.bytes.buffer, counters.bytes.byteOffset + 8, 4);
        count.setInt32(0, start, true);
        const { address: self, bytes } = arena.bytes(size);
        bytes.set(content.subarray(0, size));
        new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(context, counters.address + 8n, true);
        const expected = bytes.slice();
        if (clear !== null) expected.fill(0, clear, clear + 8);

        const call = ffiPort().functionAt(address[name], release);
        for (let i = 0; i < calls; i++) call(self);

        assertEquals(bytes.slice(), expected);
        assertEquals(count.getInt32(0, true), (start + calls) | 0);
        count.setInt32(0, -0x11111112, true); // 0xee 0xee 0xee 0xee
        assert(counters.bytes.every((byte) => byte === 0xee));
      }),
      200,
    );
  });
}

test("there is one set of release callbacks for the process", () => {
  assertStrictEquals(releaseThunks(), releaseThunks());
  assertEquals(new Set(Object.values(releaseThunks().address)).size, names.length);
  for (const address of Object.values(releaseThunks().address)) assertEquals(address % 16n, 0n);
});

test("this system gets machine code, as long as it allows executable memory", () => {
  assertEquals(releaseThunks().kind, "machine code");
  assertEquals(callbacks(ffiPort()).kind, "callback");
});

test("the code lies in a page that can be read and executed, and not written", () => {
  const maps = readFileSync("/proc/self/maps", "utf8").trim().split("\n").map((line) => {
    const [, from = "", to = "", rights = ""] = /^([0-9a-f]+)-([0-9a-f]+) (\S+)/.exec(line) ?? [];
    return { from: BigInt(`0x${from}`), to: BigInt(`0x${to}`), rights };
  });
  for (const [name, address] of Object.entries(releaseThunks().address)) {
    const page = maps.find(({ from, to }) => from <= address && address < to);
    assertEquals(page?.rights, "r-xp", name);
  }
});

// Threads unknown to the runtime. JavaScript cannot serve them: its own thread is blocked in pthread_join, forever if
// the callback were JavaScript.
const noCode = releaseThunks().kind === "machine code"
  ? null
  : "executable memory is refused: allow it to this process";

test(...needs(noCode, "functions that fill several pages all work"), () => {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(8);
  const word = new BigUint64Array(bytes.buffer, bytes.byteOffset, 1);
  for (const count of [1, 300, 1000]) {
    const code = assembleHere(
      Array.from(
        { length: count },
        (_, i) => [["set", "second", i], ["put", "second", "first", 0], ["return"]] as const,
      ),
    );
    assertEquals(code?.length, count);
    for (const [i, one] of code?.entries() ?? []) {
      assertEquals(one % 16n, 0n);
      runCode(ffiPort().handle(one), ffiPort().handle(address));
      assertEquals(word[0], BigInt(i));
    }
  }
});

test(...needs(noCode, "a C thread may have a release callback as its start function"), () => {
  using arena = new NativeArena();
  const { pthread_create, pthread_join } = ffiPort().bind("libc.so.6", 0n, {
    // int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start_routine)(void *), void *arg);
    pthread_create: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
    // int pthread_join(pthread_t thread, void **retval);
    pthread_join: { args: ["u64", "ptr"], returns: "i32" },
  });
  for (const name of names) {
    const { size, context, clear } = protocols[name];
    const counter = arena.out("i32");
    const rounds = scaled(20);
    for (let round = 0; round < rounds; round++) {
      const selves = Array.from({ length: 16 }, () => {
        const { address, bytes } = arena.bytes(size);
        bytes.fill(0xaa);
        new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(context, counter.$address, true);
        return { address, bytes };
      });
      const threads = selves.map(({ address }) => {
        const thread = arena.out("u64");
        assertEquals(pthread_create(thread.$address, 0n, releaseThunks().address[name], address), 0);
        return thread.value;
      });
      for (const thread of threads) assertEquals(pthread_join(thread, 0n), 0);
      for (const { bytes } of selves) {
        const cleared = clear === null ? [] : [...bytes.subarray(clear, clear + 8)];
        assertEquals(cleared, clear === null ? [] : [0, 0, 0, 0, 0, 0, 0, 0]);
      }
    }
    assertEquals(counter.value, 16 * rounds, name);
  }
});

const hammer = `
#include <pthread.h>
struct work { void (*release)(void *); void *self; long calls; };
static pthread_barrier_t start;
static void *run(void *argument) {
  struct work *work = argument;
  pthread_barrier_wait(&start);
  for (long i = 0; i < work->calls; i++) work->release(work->self);
  return 0;
}
/* Calls a release callback from many threads at once. Returns 0. */
int hammer(void (*release)(void *), void *self, int threads, long calls) {
  struct work work = { release, self, calls };
  pthread_t ids[64];
  pthread_barrier_init(&start, 0, threads);
  for (int i = 0; i < threads; i++) if (pthread_create(&ids[i], 0, run, &work) != 0) return 1;
  for (int i = 0; i < threads; i++) if (pthread_join(ids[i], 0) != 0) return 2;
  pthread_barrier_destroy(&start);
  return 0;
}`;

test(...needs(missingCompiler ?? noCode, "no release is lost when many threads release at once"), () => {
  using arena = new NativeArena();
  const path = compiled(hammer, "libhammer.so");
  const bound = ffiPort().bind(path, libc().loading.dlopen(cString(path), 2), {
    hammer: { args: ["ptr", "ptr", "i32", "i64"], returns: "i32" },
  });
  const [threads, calls] = [8, scaled(100_000)];
  for (const name of names) {
    const { size, context } = protocols[name];
    const counter = arena.out("u32");
    const { address, bytes } = arena.bytes(size);
    new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(context, counter.$address, true);
    assertEquals(bound.hammer(releaseThunks().address[name], address, threads, BigInt(calls)), 0);
    assertEquals(counter.value, threads * calls % 2 ** 32, name);
  }
});

// Where the system refuses executable memory.

const whereRefused = (by: string) =>
  runScriptForJson(new URL("./refused_child.ts", import.meta.url), { args: [by], isBare: true });

const fallback = { kind: "callback", released: 2, cleared: true, deleterKept: true };

test("in a child process like this one, machine code releases", async () => {
  assertEquals(await whereRefused("nothing"), { ...fallback, kind: "machine code" });
});

test("a seccomp filter that refuses executable memory leads to callbacks", async () => {
  assertEquals(await whereRefused("seccomp"), fallback);
});

const mdwe = await whereRefused("mdwe");
const oldKernel = mdwe === "unsupported" ? "the kernel has no PR_SET_MDWE: run it on Linux 6.3 or newer" : null;

test(...needs(oldKernel, "the kernel's memory-deny-write-execute leads to callbacks"), () => {
  assertEquals(mdwe, fallback);
});

// The encoders, on emulated processors: this one can run code of one architecture only.

interface Emulated {
  readonly struct: string;
  readonly before: string;
  readonly counter: number;
  readonly written: readonly string[];
  readonly returned: boolean;
  readonly preserved: boolean;
  readonly counted: string;
  readonly stores: number;
}

const architectures = {
  x86_64: { encode: x8664Thunk, offset: fc.nat(127), exclusive: false },
  aarch64: {
    encode: aarch64Thunk,
    offset: fc.oneof(fc.nat(16), fc.nat(4095)).map((words) => words * 8),
    exclusive: true,
  },
} as const;

for (const [arch, { encode, offset, exclusive }] of Object.entries(architectures)) {
  const counters = fc.oneof(fc.constantFrom(0, 2 ** 31 - 1, 2 ** 32 - 1), fc.nat(2 ** 32 - 1));
  const thunk = fc.record({
    shape: fc.tuple(offset, fc.option(offset)).filter(([context, clear]) =>
      clear === null || Math.abs(context - clear) >= 8
    ),
    content: fc.uint8Array({ minLength: 200, maxLength: 200 }),
    counter: counters,
    meanwhile: fc.array(counters, { maxLength: exclusive ? 3 : 0 }),
  });
  testOnce(...needs(missingUnicorn, `${arch}: the code works on an emulated processor, for any offsets`), () => {
    check(
      fc.property(fc.noShrink(fc.array(thunk, { minLength: 100, maxLength: 100 })), (thunks) => {
        const cases = thunks.map(({ shape: [context, clear], content, counter, meanwhile }) => {
          const code = Buffer.from(encode(clear === null ? { context } : { context, clear })).toString("hex");
          const bytes = Buffer.alloc(Math.max(context, clear ?? 0) + 16, content);
          return { arch, code, struct: bytes.toString("hex"), context, counter, meanwhile };
        });
        const { status, stdout, stderr } = spawnSync(
          python,
          [fileURLToPath(new URL("../support/emulate_thunk.py", import.meta.url))],
          { input: JSON.stringify(cases), encoding: "utf8", maxBuffer: 2 ** 28 },
        );
        assertEquals(status, 0, stderr);
        const reports = JSON.parse(stdout) as Emulated[];
        assertEquals(reports.length, thunks.length);
        for (const [i, { shape: [, clear], counter, meanwhile }] of thunks.entries()) {
          const report = reports[i];
          assert(report !== undefined);
          const expected = Buffer.from(report.before, "hex");
          if (clear !== null) expected.fill(0, clear, clear + 8);
          assertEquals(report.struct, expected.toString("hex"));
          assertEquals(report.counted, report.struct, "a reader of the count may free the struct");
          // Another processor's write between load and store fails the exclusive store, unless it changes nothing.
          let seen = counter;
          let failures = 0;
          for (const value of meanwhile) {
            if (value === seen) break;
            seen = value;
            failures++;
          }
          assertEquals(report.counter, (seen + 1) % 2 ** 32);
          if (exclusive) assertEquals(report.stores, failures + 1);
          const cleared = clear === null ? [] : Array.from({ length: 8 }, (_, byte) => `struct+${clear + byte}`);
          const counted = Array.from({ length: 4 }, (_, byte) => `counter+${byte}`);
          assertEquals(report.written, [...counted, ...cleared].toSorted());
          assert(report.returned && report.preserved, JSON.stringify(report));
        }
      }),
      2,
    );
  });
}

test("callbacks in JavaScript are refused for exports of a Worker: they would end with it", () => {
  const { runtime, platform } = ffiPort();
  const port = (isWorker: boolean): FfiPort => Object.assign(Object.create(ffiPort()), { runtime, platform, isWorker });
  const main = port(false);
  assertStrictEquals(portOfMainThread(main), main);
  assertThrows(() => portOfMainThread(port(true)), FfiError, "Export it on the main thread");
});

test("offsets that the instructions cannot encode are refused", () => {
  const refused: [(shape: ThunkShape) => Uint8Array, number[]][] = [
    [x8664Thunk, [-1, 128, 255, 256, 0.5, NaN, Infinity, 2 ** 32]],
    [aarch64Thunk, [-8, -1, 1, 4, 12.5, 32768, 2 ** 32, NaN, Infinity]],
  ];
  for (const [encode, offsets] of refused) {
    for (const offset of offsets) {
      assertThrows(() => encode({ context: offset }), RangeError, `Cannot encode offset ${offset}`);
      assertThrows(() => encode({ context: 0, clear: offset }), RangeError, `Cannot encode offset ${offset}`);
    }
  }
  assertEquals(x8664Thunk({ context: 127, clear: 119 }).length, 16);
  assertEquals(aarch64Thunk({ context: 32760, clear: 0 }).length, 28);
});
