/**
 * The timers in another library's descriptor set, by which it wakes up threads that sleep on the set.
 *
 * @module
 */
import { itimerspec } from "../../bindings/libc.ts";
import { libc, NativeArena } from "../ffi/mod.ts";
import { isOfKind, membersOf } from "./set_members.ts";

/** Timers that were stopped. */
export interface StoppedTimers {
  /** How many were running. */
  readonly count: number;
  /** Lets those that are still in the set run again, from now on. */
  restart(): void;
}

// law unix/stopTimers: unix/set_timers
/**
 * Stops the periodic timers in a set.
 *
 * @param set an epoll descriptor
 */
export function stopTimers(set: number): StoppedTimers {
  const stopped = new Map<number, Timing>();
  for (const timer of timersIn(set)) {
    const timing = timingOf(timer);
    if (timing === null || timing.seconds + timing.nanoseconds === 0n) continue; // it is not periodic
    setTiming(timer, never);
    stopped.set(timer, timing);
  }
  return {
    count: stopped.size,
    restart: () => {
      // Their owner may have closed them, and the numbers may be those of other descriptors by now.
      for (const timer of timersIn(set)) {
        const timing = stopped.get(timer);
        if (timing !== undefined) setTiming(timer, timing);
      }
      stopped.clear();
    },
  };
}

/** The interval of a timer. */
interface Timing {
  readonly seconds: bigint;
  readonly nanoseconds: bigint;
}

const never: Timing = { seconds: 0n, nanoseconds: 0n };

function timersIn(set: number): number[] {
  return membersOf(set).filter((fd) => isOfKind(fd, "[timerfd]"));
}

function timingOf(timer: number): Timing | null {
  using arena = new NativeArena();
  const found = arena.struct(itimerspec);
  if (libc().timers.timerfd_gettime(timer, found.$address) !== 0) return null;
  const { tv_sec, tv_nsec } = found.it_interval;
  return { seconds: tv_sec, nanoseconds: tv_nsec };
}

function setTiming(timer: number, timing: Timing): void {
  using arena = new NativeArena();
  const wanted = arena.struct(itimerspec);
  for (const each of [wanted.it_interval, wanted.it_value]) {
    each.tv_sec = timing.seconds;
    each.tv_nsec = timing.nanoseconds;
  }
  libc().timers.timerfd_settime(timer, 0, wanted.$address, 0n);
}
