/** Native code wakes the event loop, from any thread, without running JavaScript there. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { closeSync, fstatSync, openSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { errno, libc as tables } from "../../bindings/libc.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { libc } from "../../src/ffi/libc.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { SystemError } from "../../src/ffi/system_error.ts";
import { createWakeup, type Wakeup } from "../../src/unix/wakeup.ts";
import { FailingCalls } from "../support/failing_calls.ts";
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

test("a thread signals once, and the event loop is notified and was never blocked", async () => {
  using arena = new NativeArena();
  const thread = arena.out("u64");
  const wakeup = createWakeup();
  let isSignalled = false;
  const notified = wakeup.signalled.then(() => isSignalled = true);
  let turns = 0;
  while (turns < 20) {
    await delay(1);
    turns++;
  }
  assertEquals(isSignalled, false);
  assertEquals(threads.pthread_create(thread.$address, 0n, wakeup.callback, wakeup.argument), 0);
  assertEquals(threads.pthread_join(thread.value, 0n), 0);
  await notified;
  assert(isSignalled);
});

/** How native code and the waiter can interleave. */
const ends = ["signalled", "cancelled", "given up", "signalled, then given up", "given up, then signalled"] as const;

test("however a wakeup ends, it settles, and never closes a file of the program", async () => {
  const thread = new NativeArena();
  const id = thread.out("u64");
  const signal = ({ callback, argument }: Wakeup) => {
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
        if (end.startsWith("signalled")) signal(wakeup);
        open(); // takes the number of a closed descriptor
        if (end.endsWith("given up")) wakeup.abandon();
        if (end.startsWith("given up")) {
          wakeup.abandon();
          open();
          if (end.endsWith("signalled")) signal(wakeup);
          else leftOpen++; // held for native code, which never signalled
        }
        if (end === "cancelled") wakeup.cancel();
        open();
        await wakeup.signalled;
        open();
        if (end !== "cancelled") wakeup.abandon(); // too late, and harmless
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

test("a wakeup for which there is no descriptor is an error that says so", () => {
  using calls = new FailingCalls(libc(), { sockets: tables.sockets });
  calls.failNthWith("socketpair", 1, errno.EMFILE);
  assertThrows(() => createWakeup(), SystemError, "Cannot wait for native work: socketpair failed with EMFILE");
});
