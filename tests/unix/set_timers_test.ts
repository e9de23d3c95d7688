/** Periodic timers in an epoll set stop and run again; timers that are not in the set, or no longer, are left alone. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { itimerspec } from "../../bindings/libc.ts";
import { libc, NativeArena } from "../../src/ffi/mod.ts";
import { DescriptorSet, stopTimers } from "../../src/unix/mod.ts";
import { check, fc } from "../support/property.ts";

const { timerfd_create, timerfd_gettime, timerfd_settime } = libc().timers;
const { close, eventfd } = libc().files;

/** A timer with an interval in milliseconds, or one that fires once. */
function timer(interval: number): number {
  using arena = new NativeArena();
  const fd = timerfd_create(1, 0); // CLOCK_MONOTONIC
  const wanted = arena.struct(itimerspec);
  wanted.it_value.tv_sec = 1000n;
  wanted.it_interval.tv_sec = BigInt(Math.floor(interval / 1000));
  wanted.it_interval.tv_nsec = BigInt(interval % 1000) * 1_000_000n;
  assertEquals(timerfd_settime(fd, 0, wanted.$address, 0n), 0);
  return fd;
}

/** Whether a timer will fire, and its interval in milliseconds. */
function stateOf(fd: number): [isRunning: boolean, interval: number] {
  using arena = new NativeArena();
  const found = arena.struct(itimerspec);
  assertEquals(timerfd_gettime(fd, found.$address), 0);
  const { it_value, it_interval } = found;
  const milliseconds = Number(it_interval.tv_sec) * 1000 + Number(it_interval.tv_nsec) / 1e6;
  return [it_value.tv_sec + it_value.tv_nsec > 0n, milliseconds];
}

/** Makes a timer with a number that is free. */
function replace(number: number): void {
  const lower: number[] = [];
  for (let fd = timer(77); fd !== number; fd = timer(77)) lower.push(fd);
  lower.forEach((fd) => close(fd));
}

test("periodic timers of a set stop until they are restarted, and nothing else does", async () => {
  const one = fc.record({
    interval: fc.constantFrom(0, 250, 1000, 90_500),
    isMember: fc.boolean(),
    end: fc.constantFrom("stays" as const, "closed" as const, "replaced" as const),
  });
  await check(fc.property(fc.array(one, { maxLength: 6 }), (plan) => {
    const set = new DescriptorSet();
    const other = eventfd(0, 0);
    set.add(other); // a member that is no timer
    const timers = plan.map(({ interval, isMember }) => {
      const fd = timer(interval);
      if (isMember) set.add(fd);
      return fd;
    });
    const isStopped = plan.map(({ interval, isMember }) => isMember && interval > 0);
    const stopped = stopTimers(set.fd);
    assertEquals(stopped.count, isStopped.filter(Boolean).length);
    plan.forEach(({ interval }, i) => {
      assertEquals(stateOf(timers[i] ?? -1), isStopped[i] ? [false, 0] : [true, interval]);
    });
    plan.forEach(({ end }, i) => {
      const fd = timers[i] ?? -1;
      if (end !== "stays") close(fd);
      if (end === "replaced") replace(fd);
    });
    stopped.restart();
    plan.forEach(({ interval, end }, i) => {
      if (end === "closed") return;
      assertEquals(stateOf(timers[i] ?? -1), [true, end === "replaced" ? 77 : interval]);
      close(timers[i] ?? -1);
    });
    stopped.restart(); // of nothing, which is closed
    close(other);
    set.close();
  }));
});
