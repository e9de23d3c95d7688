/**
 * Calls back when one of several descriptors, of any kind, becomes readable while the event loop sleeps: without a
 * timer, and without CPU time until then.
 *
 * In Deno a thread of the runtime blocks in `poll`. Bun's event loop reads sockets passed to it: there a thread of our
 * own, which runs no JavaScript, blocks in `poll` and then writes to such a socket.
 *
 * @module
 */
import { AF, EFD, poll_events, pollfd, SOCK } from "../../bindings/libc.ts";
import {
  attempt,
  cString,
  FfiError,
  type FfiPort,
  ffiPort,
  libc,
  NativeArena,
  type SocketWatch,
  struct,
  SystemError,
} from "../ffi/mod.ts";
import type { NativeCall } from "./call_ring.ts";
import { ThreadTeam } from "./thread_team.ts";

/** A watch of descriptors. */
export interface ReadableWatch {
  /** Calls back once, as soon as a descriptor is readable. No-op while already watching. */
  start(): void;
  /** Sets whether the watch keeps the process alive; initially it does. */
  keepAlive(on: boolean): void;
  /**
   * C calls of one argument, which any thread may make once, that end the watch when this thread has ended without
   * closing it. One of the descriptors must be readable then.
   */
  endings(): readonly NativeCall[];
  /** Stops calling back; the descriptors may then be closed. Closing twice is harmless. */
  close(): void;
  /** Whether it was closed, and has no descriptor or thread any more. */
  readonly isEnded: boolean;
}

/** Waits for one of a list of descriptors. */
interface Waiter {
  /** Waits in `poll` until one of them is readable, and calls back. */
  wait(): void;
  keepAlive(on: boolean): void;
  /** As of the watch. */
  endings(): readonly NativeCall[];
  /** Called after the last wait has completed. */
  close(): void;
}

const tooMany = "Are there too many open files?";

// law native/watchReadable: native/readable_watch
/**
 * Watches descriptors.
 *
 * @param fds must stay open until the watch is closed; a single readable one is enough
 * @throws {SystemError} if the system has no descriptors left
 * @throws {FfiError} if it has no threads left
 */
export function watchReadable(fds: readonly number[], onReadable: () => void): ReadableWatch {
  const arena = new NativeArena();
  const list = arena.bytes((fds.length + 1) * struct(pollfd).size);
  const { files } = libc();
  // Ends a wait: merely closing a descriptor would not.
  const stop = attempt(() => files.eventfd(0, EFD.CLOEXEC));
  if (stop < 0) {
    arena.close();
    throw new SystemError("wait for a descriptor", "eventfd", -stop, tooMany);
  }
  const all = [...fds, stop];
  all.forEach((descriptor, i) => {
    const { size, over } = struct(pollfd);
    const entry = over(
      list.bytes.buffer,
      list.address - BigInt(list.bytes.byteOffset),
      list.bytes.byteOffset + i * size,
    );
    entry.fd = descriptor;
    entry.events = poll_events.POLLIN;
  });
  let isWaiting = false;
  let isClosed = false;
  let isEnded = false;
  const free = () => {
    waiter.close();
    files.close(stop);
    arena.close();
    isEnded = true;
  };
  let waiter: Waiter;
  try {
    waiter = waiterOf(ffiPort(), { address: list.address, count: all.length }, () => {
      isWaiting = false;
      if (isClosed) free();
      else onReadable();
    });
  } catch (error) {
    files.close(stop);
    arena.close();
    throw error;
  }
  return {
    start: () => {
      if (isWaiting || isClosed) return;
      isWaiting = true;
      waiter.wait();
    },
    keepAlive: (on) => waiter.keepAlive(on),
    endings: () => [...waiter.endings(), closing(stop)],
    close: () => {
      if (isClosed) return;
      isClosed = true;
      if (isWaiting) files.eventfd_write(stop, 1n);
      else free();
    },
    get isEnded() {
      return isEnded;
    },
  };
}

/** The C call that closes a descriptor. */
function closing(fd: number): NativeCall {
  return [libc().loading.dlsym(0n, cString("close")), BigInt(fd)];
}

/** An array of `struct pollfd`. */
interface Descriptors {
  readonly address: bigint;
  readonly count: number;
}

function waiterOf(port: FfiPort, descriptors: Descriptors, onDone: () => void): Waiter {
  const { pollElsewhere, watchSocket } = port;
  if (pollElsewhere !== null) return threadOfTheRuntime(pollElsewhere, descriptors, onDone);
  if (watchSocket !== null) return threadOfOurOwn(watchSocket, descriptors, onDone);
  throw new FfiError("Cannot wait for a descriptor: this runtime neither polls on threads nor takes sockets");
}

function threadOfTheRuntime(
  poll: NonNullable<FfiPort["pollElsewhere"]>,
  { address, count }: Descriptors,
  onDone: () => void,
): Waiter {
  let current: ReturnType<typeof poll> | undefined;
  let isKept = true;
  return {
    wait: () => {
      current = poll(address, count);
      if (!isKept) current.keepAlive(false);
      void current.done.then(() => {
        current = undefined;
        onDone();
      });
    },
    keepAlive: (on) => {
      if (on === isKept) return;
      isKept = on;
      current?.keepAlive(on);
    },
    endings: () => [],
    close: () => {},
  };
}

/** Waits on a thread of our own, which calls `poll`, and then `write` to a socket that the event loop watches. */
function threadOfOurOwn(
  watchSocket: NonNullable<FfiPort["watchSocket"]>,
  { address, count }: Descriptors,
  onDone: () => void,
): Waiter {
  const arena = new NativeArena();
  const { loading, sockets, files } = libc();
  const ends = arena.bytes(8, 4);
  const kind = SOCK.STREAM | SOCK.CLOEXEC | SOCK.NONBLOCK;
  const code = attempt(() => sockets.socketpair(AF.UNIX, kind, 0, ends.address));
  if (code < 0) {
    arena.close();
    throw new SystemError("wait for a descriptor", "socketpair", -code, tooMany);
  }
  const [listening = -1, ringing = -1] = new Int32Array(ends.bytes.buffer, ends.bytes.byteOffset, 2);
  let team: ThreadTeam;
  try {
    team = ThreadTeam.start({ threads: 1, rounds: 1, calls: 2 });
  } catch (error) {
    for (const end of [listening, ringing]) files.close(end);
    arena.close();
    throw error;
  }
  const poll = loading.dlsym(0n, cString("poll"));
  const write = loading.dlsym(0n, cString("write"));
  const byte = arena.bytes(1).address;
  const infinitely = 0xffff_ffffn; // an int of -1
  const calls: NativeCall[] = [[poll, address, BigInt(count), infinitely], [write, BigInt(ringing), byte, 1n]];
  let isKept = true;
  const watch: SocketWatch = watchSocket(listening, () => {
    team.finish();
    onDone();
  });
  return {
    wait: () => team.begin(calls),
    keepAlive: (on) => {
      if (on !== isKept) watch.keepAlive(on);
      isKept = on;
    },
    endings: () => team.endings([closing(ringing)]), // by the thread itself, which may be about to write
    close: () => {
      team.close();
      watch.close();
      files.close(ringing);
      arena.close();
    },
  };
}
