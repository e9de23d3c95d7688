/** The event loop gets a callback when a descriptor of any kind becomes readable, and sleeps until then. */
import { assert, assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { libc as tables } from "../../bindings/libc.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { libc } from "../../src/ffi/libc.ts";
import { SystemError } from "../../src/ffi/system_error.ts";
import { type ReadableWatch, watchReadable } from "../../src/native/readable_watch.ts";
import { isBun } from "../support/child.ts";
import { FailingCalls } from "../support/failing_calls.ts";
import { leaveFiles } from "../support/few_files.ts";
import { openFiles } from "../support/open_files.ts";
import { check, fc } from "../support/property.ts";
import { until } from "../support/until.ts";

const { eventfd, eventfd_write, close } = libc().files;

/** A descriptor that becomes readable when rung. */
function signal(): { fd: number; ring: () => void } {
  const fd = eventfd(0, 0);
  return { fd, ring: () => assertEquals(eventfd_write(fd, 1n), 0) };
}

test("each start gets one callback, when the descriptor can be read, and none comes without a start", async () => {
  const { fd, ring } = signal();
  let calls = 0;
  const watch = watchReadable([fd], () => calls++);
  watch.start();
  watch.start(); // already started
  await delay(30);
  assertEquals(calls, 0);
  ring(); // it stays readable
  await until(() => calls === 1);
  await delay(30);
  assertEquals(calls, 1);
  for (let n = 2; n < 50; n++) {
    watch.start();
    await until(() => calls === n);
    assertEquals(calls, n);
  }
  watch.close();
  watch.close();
  watch.start();
  await delay(20);
  assertEquals(calls, 49);
  close(fd);
});

test("a watch that cannot be made leaves no descriptor open", () => {
  const { fd } = signal();
  for (let count = 0; count < 4; count++) {
    const before = openFiles();
    const allowAll = leaveFiles(count);
    let watch: ReadableWatch | undefined;
    try {
      watch = watchReadable([fd], () => {});
    } catch (error) {
      assert(error instanceof SystemError && error.code === "EMFILE", String(error));
    }
    allowAll();
    if (watch === undefined) assertEquals(openFiles(), before, `with ${count}`);
    else watch.close(); // in Bun its socket is closed later
  }
  close(fd);
});

test("a watch for which there is no memory leaves no descriptor open", () => {
  const { fd } = signal();
  const before = openFiles();
  using calls = new FailingCalls(libc(), { loading: tables.loading });
  let nth = 0;
  for (let isMade = false; !isMade;) {
    calls.failNth("calloc", ++nth, 0n);
    try {
      watchReadable([fd], () => {}).close();
      isMade = true;
    } catch (error) {
      assert(error instanceof FfiError && error.message.includes("calloc"), String(error));
      assertEquals(openFiles(), before, `allocation ${nth}`);
    }
  }
  assert(nth > 1);
  close(fd);
});

test("watches closed at any time call no callback afterwards, and leave no descriptor open", async () => {
  // The first watch creates the runtime's own descriptors and threads.
  const first = signal();
  const once = watchReadable([first.fd], () => {});
  once.start();
  once.close();
  close(first.fd);
  await delay(50);
  const before = openFiles();
  const watches = fc.array(
    fc.record({ starts: fc.boolean(), rings: fc.constantFrom("before", "after", "never"), turns: fc.nat(3) }),
    { minLength: 1, maxLength: 4 },
  );
  await check(
    fc.asyncProperty(watches, async (plans) => {
      await Promise.all(plans.map(async ({ starts, rings, turns }) => {
        const { fd, ring } = signal();
        let isClosed = false;
        let late = 0;
        const watch = watchReadable([fd], () => late += isClosed ? 1 : 0);
        if (rings === "before") ring();
        if (starts) watch.start();
        if (rings === "after") ring();
        for (let i = 0; i < turns; i++) await delay(0);
        isClosed = true;
        watch.close();
        await delay(1);
        assertEquals(late, 0);
        close(fd);
      }));
    }),
    40,
  );
  await until(() => openFiles() <= before);
  assert(openFiles() <= before, `${openFiles()} files are open, ${before} were`);
});

for (const order of ["start first", "unkept first"]) {
  test(`a watch with keepAlive(false) does not keep the process alive: ${order}`, () => {
    assertEquals(run(order), { status: 0, signal: null });
  });
}

test("a watch with keepAlive(true) keeps the process alive", () => {
  assertEquals(run("kept again", 1500).signal, "SIGTERM");
});

function run(order: string, timeout = 20_000): { status: number | null; signal: string | null } {
  const child = fileURLToPath(new URL("readable_watch_child.ts", import.meta.url));
  const args = isBun ? ["run", child, order] : ["run", "-A", "--no-check", "--quiet", child, order];
  const { status, signal } = spawnSync(process.execPath, args, { timeout });
  return { status, signal };
}
