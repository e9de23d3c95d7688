/** Threads that run lists of C calls in rounds: what is done when, and that nothing of them is left. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { NativeArena } from "../../src/ffi/arena.ts";
import { aarch64Runner, type NativeCall, x8664Runner } from "../../src/ffi/call_list.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { libc } from "../../src/ffi/libc.ts";
import { canHaveTeams, NativeTeam } from "../../src/ffi/native_team.ts";
import { cString } from "../../src/ffi/text.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

const missing = canHaveTeams() ? null : "machine code is forbidden here";
const memcpy = libc().loading.dlsym(0n, cString("memcpy"));

/** For every thread and round, bytes to copy; 0: nothing. */
const jobs = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 0, max: 6 })).chain(([threads, rounds]) =>
  fc.record({
    sizes: fc.array(fc.array(fc.integer({ min: 0, max: 300 }), { minLength: rounds, maxLength: rounds }), {
      minLength: threads,
      maxLength: threads,
    }),
    steps: fc.nat(rounds + 1),
  })
);

const room = 512;

/** Memory for the job: what is copied, to where, and the calls that do it. */
function prepared(arena: NativeArena, sizes: readonly (readonly number[])[]) {
  const places = sizes.flat().length;
  const [from, to] = [arena.bytes(places * room, 64), arena.bytes(places * room, 64)];
  from.bytes.forEach((_, i) => from.bytes[i] = 1 + i % 251);
  let place = 0;
  const lanes = sizes.map((lane) =>
    lane.map((size): NativeCall | null => {
      const at = BigInt(room * place++);
      return size === 0 ? null : [memcpy, to.address + at, from.address + at, BigInt(size)];
    })
  );
  /** What of each place, by thread and round, has been copied. */
  const copied = () =>
    sizes.map((lane, thread) =>
      lane.map((size, round) => {
        const at = room * (thread * lane.length + round);
        const bytes = to.bytes.subarray(at, at + room);
        const wanted = from.bytes.subarray(at, at + size);
        return bytes.every((byte, i) => byte === (wanted[i] ?? 0))
          ? "all"
          : bytes.some((byte) => byte !== 0)
          ? "some"
          : "none";
      })
    );
  return { lanes, copied };
}

function threadsNow(): number {
  return readdirSync("/proc/self/task").length;
}

test(...needs(missing, "after each step the rounds before are done and those to come have not begun"), () => {
  check(
    fc.property(jobs, ({ sizes, steps }) => {
      using arena = new NativeArena();
      const { lanes, copied } = prepared(arena, sizes);
      {
        using team = NativeTeam.start(lanes);
        for (let step = 1; step <= steps; step++) {
          team.next();
          copied().forEach((lane, thread) =>
            lane.forEach((state, round) => {
              const isEmpty = sizes[thread]?.[round] === 0;
              if (round <= step - 2 || isEmpty) assertEquals(state, "all");
              else if (round >= step) assertEquals(state, "none");
            })
          );
        }
      }
      // Whoever stops in the middle has the rest done all the same: nobody waits for ever.
      assert(copied().flat().every((state) => state === "all"));
    }),
    150,
  );
});

test(...needs(missing, "a team that cannot be completed does nothing, says why, and leaves no thread behind"), () => {
  using arena = new NativeArena();
  const { lanes, copied } = prepared(arena, [[8, 8], [8, 8], [8, 8]]);
  const before = threadsNow();
  for (const failing of [0, 1, 2]) {
    let made = 0;
    const create = (...args: Parameters<ReturnType<typeof libc>["threads"]["pthread_create"]>) =>
      made++ === failing ? 11 : libc().threads.pthread_create(...args);
    assertThrows(() => NativeTeam.start(lanes, create), FfiError, "pthread_create returned 11");
    assert(copied().flat().every((state) => state === "none"));
  }
  assert(threadsNow() <= before, `${threadsNow()} threads, and ${before} before`);
});

test(...needs(missing, "a closed team has no more rounds"), () => {
  using arena = new NativeArena();
  const team = NativeTeam.start(prepared(arena, [[1]]).lanes);
  team.close();
  team.close();
  assertThrows(() => team.next(), FfiError, "has done them all");
});

const python = process.env["CAUSEWAY_PYTHON"] ?? "python3";
const missingUnicorn = spawnSync(python, ["-c", "import unicorn"]).status === 0
  ? null
  : `${python} has no package unicorn: pip install unicorn, and name another Python with CAUSEWAY_PYTHON`;

/** A function that stores its second argument where the first points to, and destroys what a function may. */
const codes = {
  // mov [rdi], rsi; lea rax, [rdx + rcx]; mov [rdi + 8], rax; xor edi, edi; xor esi, esi; ret
  x86_64: { run: x8664Runner(), callee: "488937488d040a4889470831ff31f6c3" },
  // str x1, [x0]; add x9, x2, x3; str x9, [x0, #8]; mov x0, #0; mov x8, #0; ret
  aarch64: { run: aarch64Runner(), callee: "010000f94900038b090400f9000080d2080080d2c0035fd6" },
};

for (const arch of ["x86_64", "aarch64"] as const) {
  test(...needs(missingUnicorn, `the ${arch} code makes every call of a list with its arguments, and returns`), () => {
    const [base, list, function_] = [0x30_0000, 0x400, 0x200];
    const { run, callee } = codes[arch];
    const cases = [0, 1, 2, 5].map((calls) => {
      const memory = new DataView(new ArrayBuffer(0x800));
      const bytes = new Uint8Array(memory.buffer);
      bytes.set(fromHex(callee), function_);
      for (let i = 0; i < calls; i++) {
        const words = [base + function_, base + 16 * i, 1000 + i, 70 + i, 2 ** 40];
        words.forEach((word, n) => memory.setBigUint64(list + 40 * i + 8 * n, BigInt(word), true));
      }
      const expected = new DataView(memory.buffer.slice());
      for (let i = 0; i < calls; i++) {
        expected.setBigUint64(16 * i, BigInt(1000 + i), true);
        expected.setBigUint64(16 * i + 8, BigInt(70 + i + 2 ** 40), true);
      }
      const given = { arch, code: toHex(run), memory: toHex(bytes), arguments: [base + list] };
      return { given, expected: toHex(new Uint8Array(expected.buffer)) };
    });
    const script = fileURLToPath(new URL("emulate_call.py", import.meta.url));
    const input = JSON.stringify(cases.map(({ given }) => given));
    const { status, stdout, stderr } = spawnSync(python, [script], { input, encoding: "utf8" });
    assertEquals(status, 0, stderr);
    assertEquals(
      JSON.parse(stdout),
      cases.map(({ expected }) => ({ memory: expected, result: "0", returned: true, preserved: true })),
    );
  });
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => parseInt(byte, 16));
}
