/** Native code wakes the event loop, from any thread, without running JavaScript there. */
import { assert, assertEquals } from "@std/assert";
import { closeSync, fstatSync, openSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { NativeArena } from "../../src/ffi/arena.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { createWakeup, type Wakeup } from "../../src/unix/wakeup.ts";
import { check, fc } from "../support/property.ts";
import { openFiles } from "../support/open_files.ts";

const threads = openLibrary({
  name: "libc",
  override: "CAUSEWAY_TEST_LIBC",
  sonames: ["libc.so.6"],
  remedy: "",
  symbols: {
    threads: {
      // int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
      pthread_create: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
      // int pthread_join(pthread_t thread, void **retval);
      pthread_join: { args: ["u64", "ptr"], returns: "i32" },
    },
  },
}).functions.threads;

test("a thread says it once, and the event loop hears it and was never blocked", async () => {
  using arena = new NativeArena();
  const thread = arena.out("u64");
  const wakeup = createWakeup();
  let heard = false;
  const said = wakeup.signalled.then(() => heard = true);
  let turns = 0;
  while (turns < 20) {
    await delay(1);
    turns++;
  }
  assertEquals(heard, false);
  assertEquals(threads.pthread_create(thread.$address, 0n, wakeup.callback, wakeup.argument), 0);
  assertEquals(threads.pthread_join(thread.value, 0n), 0);
  await said;
  assert(heard);
});

/** How native code and the waiter can interleave. */
const ends = ["said", "cancelled", "given up", "said, then given up", "given up, then said"] as const;

test("whatever ends a wakeup, it settles, and no file of the program is ever closed by it", async () => {
  const thread = new NativeArena();
  const id = thread.out("u64");
  const say = ({ callback, argument }: Wakeup) => {
    assertEquals(threads.pthread_create(id.$address, 0n, callback, argument), 0);
    assertEquals(threads.pthread_join(id.value, 0n), 0);
  };
  createWakeup().cancel();
  const before = openFiles();
  let leftOpen = 0;
  await check(
    fc.asyncProperty(fc.array(fc.constantFrom(...ends), { minLength: 1, maxLength: 8 }), async (program) => {
      // Files of the program take every free number: a wrong close of such a number closes one, which is detected.
      const files: number[] = [];
      const open = () => files.push(openSync("/proc/self/status", "r"));
      const settled: Promise<void>[] = [];
      for (const end of program) {
        const wakeup = createWakeup();
        settled.push(wakeup.signalled);
        if (end.startsWith("said")) say(wakeup);
        open(); // takes the number of what was closed
        if (end.endsWith("given up")) wakeup.giveUp();
        if (end.startsWith("given up")) {
          wakeup.giveUp();
          open();
          if (end.endsWith("said")) say(wakeup);
          else leftOpen++; // held for native code, which never signalled
        }
        if (end === "cancelled") wakeup.cancel();
        open();
        await wakeup.signalled;
        open();
        if (end !== "cancelled") wakeup.giveUp(); // too late, and harmless
      }
      await Promise.all(settled);
      for (const file of files) {
        fstatSync(file); // throws EBADF
        closeSync(file);
      }
    }),
    100,
  );
  thread.close();
  assert(openFiles() <= before + leftOpen + 2, `${openFiles()} open files, ${before} before, ${leftOpen} left`);
});
