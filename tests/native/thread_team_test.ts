/** Threads that take C calls from a ring, in rounds: when calls have completed, and that no thread is left behind. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { aarch64Taker, type NativeCall, x8664Taker } from "../../src/native/call_ring.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { type Libc, libc } from "../../src/ffi/libc.ts";
import { canStartThreads, type Masking, ThreadTeam } from "../../src/native/thread_team.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";
import { runScript } from "../support/child.ts";
import { until } from "../support/until.ts";
import { missingUnicorn, python } from "../support/emulator.ts";

const missing = canStartThreads() ? null : "machine code is forbidden here";
const memcpy = libc().loading.dlsym(0n, cString("memcpy"));

const noAttribute = libc().loading.dlsym(0n, cString("pthread_attr_setsigmask_np")) === 0n
  ? "glibc is older than 2.32"
  : null;
const maskings: readonly Masking[] = noAttribute === null ? ["inherited", "attribute"] : ["inherited"];

interface Job {
  readonly threads: number;
  /** Rounds that may be in flight. */
  readonly rounds: number;
  /** The steps in sequence: begin a round of copies of these sizes, or finish one. */
  readonly steps: readonly ((readonly number[]) | "finish")[];
}

const most = 7;

const jobs: fc.Arbitrary<Job> = fc.record({
  threads: fc.integer({ min: 1, max: 5 }),
  rounds: fc.integer({ min: 1, max: 4 }),
  steps: fc.array(
    fc.oneof(
      fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: most }),
      fc.constant("finish" as const),
    ),
    { maxLength: 40 },
  ),
});

const room = 512;

/** Calls that copy these numbers of bytes, and checks of the outcome. */
function copies(arena: NativeArena, sizes: readonly number[]) {
  const [from, to] = [arena.bytes(sizes.length * room, 64), arena.bytes(sizes.length * room, 64)];
  from.bytes.forEach((_, i) => from.bytes[i] = 1 + i % 251);
  const calls = sizes.map((size, i): NativeCall => {
    const at = BigInt(room * i);
    return [memcpy, to.address + at, from.address + at, BigInt(size)];
  });
  const done = () =>
    sizes.every((size, i) => {
      const bytes = to.bytes.subarray(room * i, room * (i + 1));
      return bytes.every((byte, at) => byte === (at < size ? from.bytes[room * i + at] : 0));
    });
  const isUntouched = () => to.bytes.every((byte) => byte === 0);
  return { calls, done, isUntouched };
}

/** All but KILL and STOP, which cannot be blocked, and the two that the C library reserves (32 and 33). */
const allSignals = 0xfffffffe7ffbfeffn;

/** The signals that a thread blocks. None if the thread has exited. */
function blockedBy(thread: string): bigint {
  try {
    const status = readFileSync(`/proc/${thread}/status`, "utf8");
    return BigInt(`0x${/SigBlk:\s*(\w+)/.exec(status)?.[1] ?? "0"}`);
  } catch {
    return 0n;
  }
}

/** The threads of this process that block all signals. A thread being created briefly blocks them too. */
async function blockingThreads(): Promise<Set<string>> {
  const blocksAll = (thread: string) => (blockedBy(`self/task/${thread}`) & allSignals) === allSignals;
  const blocking = readdirSync("/proc/self/task").filter(blocksAll);
  await delay(20);
  return new Set(blocking.filter(blocksAll));
}

/** The number of new threads. A joined thread is gone for C, but may linger in the system's list. */
async function newThreads(before: ReadonlySet<string>, expected: number): Promise<number> {
  for (let i = 0;; i++) {
    const count = [...await blockingThreads()].filter((thread) => !before.has(thread)).length;
    if (count === expected || i === 50) return count;
  }
}

test(...needs(missing, "a finished round is done, and closing a team completes the rounds that have begun"), () => {
  check(
    fc.property(jobs, ({ threads, rounds, steps }) => {
      using arena = new NativeArena();
      const all: ReturnType<typeof copies>[] = [];
      let finished = 0;
      {
        using team = ThreadTeam.start({ threads, rounds, calls: most });
        for (const step of steps) {
          if (step === "finish") {
            team.finish();
            if (finished < all.length) finished++;
            assert(all.slice(0, finished).every((one) => one.done()));
            continue;
          }
          const one = copies(arena, step);
          if (all.length - finished === rounds) {
            assertThrows(() => team.begin(one.calls), FfiError, `${rounds} are in flight`);
            continue;
          }
          assert(step.length === 0 || one.isUntouched());
          all.push(one);
          team.begin(one.calls);
        }
      }
      assert(all.every((one) => one.done()));
    }),
    150,
  );
});

test(...needs(missing, "a thread that is delayed delays no other thread"), async () => {
  using arena = new NativeArena();
  const { sem_init, sem_post } = libc().threads;
  const gate = arena.bytes(64, 64).address;
  sem_init(gate, 0, 0);
  const { calls, done } = copies(arena, [1, 2, 3, 4, 5]);
  using team = ThreadTeam.start({ threads: 2, rounds: 2, calls: 5 });
  team.begin([[libc().loading.dlsym(0n, cString("sem_wait")), gate]]);
  team.begin(calls);
  await until(done);
  const isDone = done();
  sem_post(gate);
  team.finish();
  assert(isDone, "the other thread did not do the later round");
});

test(
  ...needs(missing, "a team's threads get no signals, JavaScript's still gets its own, and a close ends them"),
  async () => {
    for (const masking of maskings) {
      const before = await blockingThreads();
      const own = blockedBy("thread-self");
      const team = ThreadTeam.start({ threads: 3, rounds: 1, calls: 1 }, undefined, masking);
      assertEquals(await newThreads(before, 3), 3);
      team.close();
      assertEquals(await newThreads(before, 0), 0);
      assertEquals(blockedBy("thread-self"), own);
      assert((own & allSignals) !== allSignals, "JavaScript's thread gets some signals");
    }
  },
);

// In Bun the main thread and a Worker that it terminated while that started a team waited for each other forever.
test(
  ...needs(missing ?? noAttribute, "JavaScript's thread gets its signals also while a team starts, by default"),
  () => {
    const own = blockedBy("thread-self");
    const meanwhile: bigint[] = [];
    const create = (...args: Parameters<Libc["threads"]["pthread_create"]>) => {
      meanwhile.push(blockedBy("thread-self"));
      return libc().threads.pthread_create(...args);
    };
    ThreadTeam.start({ threads: 2, rounds: 1, calls: 1 }, create).close();
    assertEquals(meanwhile, [own, own]);
  },
);

test(...needs(missing, "a team that cannot start every thread is an error, and leaves no thread behind"), async () => {
  const before = await blockingThreads();
  for (const failing of [0, 1, 2]) {
    let made = 0;
    const create = (...args: Parameters<Libc["threads"]["pthread_create"]>) =>
      made++ === failing ? 11 : libc().threads.pthread_create(...args);
    assertThrows(
      () => ThreadTeam.start({ threads: 3, rounds: 1, calls: 1 }, create),
      FfiError,
      "pthread_create returned 11",
    );
  }
  assertEquals(await newThreads(before, 0), 0);
});

test(...needs(missing, "a program ends normally although a team is open and waits for work"), async () => {
  for (const [args, status] of [[[], 0], [["exit"], 7]] as const) {
    const child = await runScript(new URL("./open_team_child.ts", import.meta.url), { args });
    assertEquals([child.code, child.signal, child.stdout], [status, null, "started\n"], child.stderr);
  }
});

test(
  ...needs(missing, "C calls end a team: its threads make the rounds begun and the last calls, and exit"),
  async () => {
    const before = await blockingThreads();
    await check(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.nat(3), fc.boolean(), async (threads, begun, isFinished) => {
        using arena = new NativeArena();
        const team = ThreadTeam.start({ threads, rounds: Math.max(1, begun), calls: 2 });
        const rounds = Array.from({ length: begun }, () => copies(arena, [5, 6]));
        const last = copies(arena, Array.from({ length: threads }, () => 7));
        const [one, other] = [rounds.slice(0, begun >> 1), rounds.slice(begun >> 1)];
        for (const round of one) team.begin(round.calls);
        const endings = team.endings(last.calls);
        for (const round of other) team.begin(round.calls); // the last calls stay the last
        if (isFinished) team.finishAll();
        assert(last.isUntouched());
        for (const [address, argument = 0n] of endings) {
          ffiPort().functionAt(address, { args: ["ptr"], returns: "i32" } as const)(argument);
        }
        assertEquals(await newThreads(before, 0), 0);
        assert([...rounds, last].every((round) => round.done()));
      }),
      10,
    );
  },
);

test(...needs(missing, "a closed team begins nothing, and a round has no more calls than its maximum"), () => {
  using arena = new NativeArena();
  const { calls, isUntouched } = copies(arena, [1, 2]);
  const team = ThreadTeam.start({ threads: 1, rounds: 1, calls: 1 });
  assertThrows(() => team.begin(calls), FfiError, "2 calls");
  team.close();
  team.close();
  assertThrows(() => team.begin(calls.slice(1)), FfiError, "closed");
  team.finish();
  assert(isUntouched());
});

/**
 * A function that stores its arguments and the stack's alignment where the first argument points; one that increments
 * the counter its argument points to, and returns 1 the first time and 0 the second, in 32 bits; one that increments.
 * They clobber every register that a function may.
 */
const codes = {
  x86_64: {
    take: x8664Taker(),
    call: "48893748895708488d44240883e00f4889471031c931d231f631ffc3",
    wait: "48ff07488b0783e001480fbae82831c931d231f631ffc3",
    post: "48ff07b80700000031c931d231f631ffc3",
  },
  aarch64: {
    take: aarch64Taker(),
    call: "010000f9020400f9e9030091290d4092090800f9000080d2010080d2020080d2080080d2090080d20a0080d2c0035fd6",
    wait: "090040f929050091090000f920014092000058b2080080d2090080d20a0080d2c0035fd6",
    post: "090040f929050091090000f9e00080d2080080d2090080d20a0080d2c0035fd6",
  },
};

for (const arch of ["x86_64", "aarch64"] as const) {
  testOnce(
    ...needs(missingUnicorn, `the ${arch} code makes every call with its arguments and reports its rounds`),
    () => {
      const base = 0x30_0000;
      const at = {
        call: 0x100,
        wait: 0x180,
        post: 0x200,
        permits: 0x280,
        rounds: 0x300,
        entries: 0x400,
        results: 0x800,
      };
      const code = codes[arch];
      const cases = [[], [0], [0, 1], [0, 0, 1, 0, 2], [2, 1, 0, 2, 1, 1]].map((rounds, nth) => {
        const memory = new DataView(new ArrayBuffer(0x1000));
        const bytes = new Uint8Array(memory.buffer);
        const put = (offset: number, ...words: number[]) =>
          words.forEach((word, n) => memory.setBigUint64(offset + 8 * n, BigInt(word), true));
        for (const name of ["call", "wait", "post"] as const) bytes.set(Uint8Array.fromHex(code[name]), at[name]);
        const next = 5 * nth; // the ring has eight entries: some runs wrap around
        put(0, next, 7, base + at.entries, base + at.permits, base + at.wait, base + at.post);
        const left = [0, 1, 2].map((round) => rounds.filter((one) => one === round).length + (round === 2 ? 1 : 0));
        left.forEach((count, round) => put(at.rounds + 64 * round, count));
        rounds.forEach((round, i) => {
          const result = base + at.results + 32 * i;
          put(
            at.entries + 40 * ((next + i) % 8),
            base + at.call,
            result,
            70 + i,
            2 ** 40 + i,
            base + at.rounds + 64 * round,
          );
        });
        const given = bytes.toHex();
        put(0, next + rounds.length + 1); // plus the one that ends the thread
        put(at.permits, 2 * (rounds.length + 1)); // each wait was interrupted once
        left.forEach((count, round) => {
          const before = rounds.filter((one) => one === round).length;
          put(at.rounds + 64 * round, count - before, before > 0 && before === count ? 1 : 0);
        });
        rounds.forEach((_, i) => put(at.results + 32 * i, 70 + i, 2 ** 40 + i, 0));
        return {
          given: { arch, code: code.take.toHex(), memory: given, arguments: [base] },
          expected: { memory: bytes.toHex(), returned: true, preserved: true },
        };
      });
      const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
      const input = JSON.stringify(cases.map(({ given }) => given));
      const { status, stdout, stderr } = spawnSync(python, [script], { input, encoding: "utf8" });
      assertEquals(status, 0, stderr);
      const reports: { memory: string; returned: boolean; preserved: boolean }[] = JSON.parse(stdout);
      assertEquals(
        reports.map(({ memory, returned, preserved }) => ({ memory, returned, preserved })),
        cases.map(({ expected }) => expected),
      );
    },
  );
}
