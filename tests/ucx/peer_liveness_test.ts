/** Watching peers: which are watched, which are reported, when, and that this keeps nothing alive and sets no timer. */
import { assert, assertEquals } from "@std/assert";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { errno, libc as tables } from "../../bindings/libc.ts";
import { libc } from "../../src/ffi/libc.ts";
import { watchReadable } from "../../src/native/readable_watch.ts";
import { PeerLiveness } from "../../src/ucx/peer_liveness.ts";
import type { DescriptorSet } from "../../src/unix/mod.ts";
import { ownIdentity, PeerProcess } from "../../src/ucx/process_identity.ts";
import { patiently, runScript } from "../support/child.ts";
import { FailingCalls } from "../support/failing_calls.ts";
import { openFiles } from "../support/open_files.ts";
import { until } from "../support/until.ts";
import { identityOf } from "./identity.ts";

/** An endpoint that counts how often it is lost, and how often its process ends before that. */
function endpoint() {
  const one = {
    lost: 0,
    ended: 0,
    lose: () => Promise.resolve(void one.lost++),
    processEnded: () => void (one.ended += Number(one.lost === 0)),
  };
  return one;
}

/** Sleeps on a descriptor, as a worker does, and counts how often it wakes up. */
function sleeper() {
  const watches: { close(): void }[] = [];
  const sets: { close(): void }[] = [];
  const counted = {
    wakes: 0,
    watchDescriptor: (descriptors: DescriptorSet, act: () => void) => {
      const watch = watchReadable([descriptors.fd], () => {
        counted.wakes++;
        act();
        watch.start();
      });
      watch.keepAlive(false);
      watch.start();
      watches.push(watch);
      sets.push(descriptors);
    },
    close: () => [...watches, ...sets].forEach((one) => one.close()),
  };
  return counted;
}

function start(): { child: ChildProcess; process: PeerProcess | null } {
  const child = spawn("sleep", ["100"], { stdio: "ignore" });
  assert(child.pid !== undefined);
  return { child, process: PeerProcess.find(identityOf(child.pid)) };
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

for (const how of ["by a descriptor", "without one"]) {
  test(`only a process that ends is reported, after the time that UCX has for it: ${how}`, patiently, async () => {
    const [one, other] = [start(), start()];
    const sleeping = sleeper();
    let unseen = 0;
    const watch = new PeerLiveness(sleeping, () => unseen++);
    const seen = (process: PeerProcess | null) =>
      process === null || how === "by a descriptor"
        ? process
        : { key: process.key, isGone: () => process.isGone(), open: () => null };
    const [first, again, second, forgotten, own] = [endpoint(), endpoint(), endpoint(), endpoint(), endpoint()];
    for (const each of [first, again, forgotten]) watch.watch(each, seen(one.process));
    watch.watch(second, seen(other.process));
    watch.watch(own, PeerProcess.find(ownIdentity()));
    watch.forget(forgotten);
    await pause(1100);
    assertEquals([first, again, second, own].map(({ lost }) => lost), [0, 0, 0, 0], "while they live");
    const isSeen = how === "by a descriptor";
    assertEquals([first, second, forgotten, own].map((each) => watch.sees(each)), [isSeen, isSeen, false, false]);
    assertEquals(unseen, 0);
    const killed = performance.now();
    await kill(one.child);
    await until(() => first.lost > 0);
    const took = performance.now() - killed;
    assertEquals([first, again, second, forgotten, own].map(({ ended }) => ended), [1, 1, 0, 0, 0], "told at once");
    assert(took > 900, "UCX has a second to report it itself");
    assert(again.lost > 0 && took < 20_000, `it took ${took} ms`);
    assertEquals([second, forgotten, own].map(({ lost }) => lost), [0, 0, 0]);
    assertEquals(unseen, 1, "UCX has been asked to check its peers again");
    assertEquals([watch.sees(first), watch.sees(second)], [false, isSeen]);
    assertEquals(sleeping.wakes, how === "by a descriptor" ? 1 : 0);
    watch.close();
    sleeping.close();
    await kill(other.child);
  });
}

test("an endpoint that UCX has failed is lost after the time that UCX has to end operations in flight", async () => {
  let unseen = 0;
  const watch = new PeerLiveness({ watchDescriptor: () => {} }, () => unseen++);
  const [failed, closed] = [endpoint(), endpoint()];
  const start = performance.now();
  watch.failed(failed);
  watch.failed(closed);
  assertEquals(unseen, 2);
  watch.forget(closed);
  await until(() => failed.lost > 0);
  const took = performance.now() - start;
  assert(took > 900 && took < 20_000, `it took ${took} ms`);
  assertEquals(closed.lost, 0);
  watch.close();
});

test("any number of endpoints to a process take one descriptor, which is closed with the last", async () => {
  const { child, process } = start();
  let set: DescriptorSet | undefined;
  const watch = new PeerLiveness({ watchDescriptor: (descriptors) => void (set = descriptors) }, () => {});
  const endpoints = Array.from({ length: 100 }, endpoint);
  watch.watch(endpoint(), process); // the set's own descriptor exists from now on
  const before = openFiles();
  for (const each of endpoints) watch.watch(each, process);
  assertEquals(openFiles(), before);
  for (const each of endpoints) watch.forget(each);
  assertEquals(openFiles(), before);
  watch.close();
  set?.close();
  assertEquals(openFiles(), before - 2);
  await kill(child);
});

test("a process for which the system has no set, no room in it or no memory is looked for", async () => {
  const { child, process } = start();
  const before = openFiles();
  const failures: ((calls: FailingCalls) => void)[] = [
    (calls) => calls.failNthWith("epoll_create1", 1, errno.EMFILE),
    (calls) => calls.failNthWith("epoll_ctl", 1, errno.ENOSPC),
    (calls) => calls.failNth("calloc", 2, 0n), // the first is for the state of the process
  ];
  for (const fail of failures) {
    let set: DescriptorSet | undefined;
    const watch = new PeerLiveness({ watchDescriptor: (descriptors) => void (set = descriptors) }, () => {});
    const one = endpoint();
    {
      using calls = new FailingCalls(libc(), { files: tables.files, loading: tables.loading });
      fail(calls);
      watch.watch(one, process);
      assert(calls.hasFailed);
    }
    assertEquals(watch.sees(one), false);
    watch.close();
    set?.close();
    assertEquals(openFiles(), before);
  }
  await kill(child);
});

test("watching creates no timer, and does not keep the process alive", patiently, async () => {
  const { code, stdout } = await runScript(new URL("./peer_liveness_child.ts", import.meta.url));
  assertEquals([code, stdout.trim()], [0, "0 timers"]);
});
