/** Native code wakes the event loop, from any thread, without running JavaScript there. */
import { assert, assertEquals } from "@std/assert";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { NativeArena } from "../../src/ffi/arena.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { createWakeup } from "../../src/ffi/wakeup.ts";
import { scaled } from "../support/property.ts";

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

const openFiles = () => readdirSync("/proc/self/fd").length;

test("a thread says it once, and the event loop hears it and was never blocked", async () => {
  using arena = new NativeArena();
  const thread = arena.out("u64");
  const wakeup = createWakeup();
  let heard = false;
  const said = wakeup.said.then(() => heard = true);
  let turns = 0;
  while (turns < 20) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    turns++;
  }
  assertEquals(heard, false);
  assertEquals(threads.pthread_create(thread.$address, 0n, wakeup.callback, wakeup.argument), 0);
  assertEquals(threads.pthread_join(thread.value, 0n), 0);
  await said;
  assert(heard);
});

test("what is cancelled settles too, and neither way leaves a file open", async () => {
  using arena = new NativeArena();
  const thread = arena.out("u64");
  createWakeup().cancel();
  const before = openFiles();
  for (let i = 0; i < scaled(500); i++) {
    const wakeup = createWakeup();
    if (i % 2 === 0) wakeup.cancel();
    else {
      threads.pthread_create(thread.$address, 0n, wakeup.callback, wakeup.argument);
      threads.pthread_join(thread.value, 0n);
    }
    await wakeup.said;
  }
  assert(openFiles() <= before + 2, `${openFiles()} open files, ${before} before`);
});
