/**
 * Being called back when one of some descriptors can be read, whatever it is, while the event loop sleeps: without a timer, and
 * without a processor's time until then.
 *
 * In Deno a thread of the runtime is in `poll`. Bun's event loop reads sockets that are given to it: there a thread of
 * our own, which runs no JavaScript, is in `poll` and then writes to one.
 *
 * @module
 */
import { AF, EFD, poll_events, pollfd, SOCK } from "../../bindings/libc.ts";
import { cString, FfiError, type FfiPort, ffiPort, libc, NativeArena, type SocketWatch, struct } from "../ffi/mod.ts";
import type { NativeCall } from "./call_ring.ts";
import { ThreadTeam } from "./thread_team.ts";

/** A watch of descriptors. */
export interface ReadableWatch {
  /** Calls back once, as soon as a descriptor can be read. Nothing if it is being watched already. */
  start(): void;
  /** Whether the process stays alive while it watches; at first it does. */
  keepAlive(on: boolean): void;
  /** Calls back no more, and lets the descriptors be closed. Closing twice is harmless. */
  close(): void;
}

/** Waits for one of a list of descriptors. */
interface Waiter {
  /** Waits in `poll` until one of them can be read, and calls back. */
  wait(): void;
  keepAlive(on: boolean): void;
  /** After the last wait is over. */
  close(): void;
}

// law native/watchReadable: native/readable_watch
/**
 * Watches descriptors.
 *
 * @param fds stay open until the watch is closed; one that can be read is enough
 * @throws {FfiError} if there are no descriptors or no threads left
 */
export function watchReadable(fds: readonly number[], onReadable: () => void): ReadableWatch {
  const arena = new NativeArena();
  const { files } = libc();
  // What ends a wait: a descriptor that is merely closed would not.
  const stop = files.eventfd(0, EFD.CLOEXEC);
  if (stop < 0) throw new FfiError("Cannot wait for a descriptor: eventfd failed. Are there too many open files?");
  const all = [...fds, stop];
  const list = arena.bytes(all.length * struct(pollfd).size);
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
  const free = () => {
    waiter.close();
    files.close(stop);
    arena.close();
  };
  const waiter = waiterOf(ffiPort(), { address: list.address, count: all.length }, () => {
    isWaiting = false;
    if (isClosed) free();
    else onReadable();
  });
  return {
    start: () => {
      if (isWaiting || isClosed) return;
      isWaiting = true;
      waiter.wait();
    },
    keepAlive: (on) => waiter.keepAlive(on),
    close: () => {
      if (isClosed) return;
      isClosed = true;
      if (isWaiting) files.eventfd_write(stop, 1n);
      else free();
    },
  };
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
    close: () => {},
  };
}

/** The functions that a thread of our own calls: their addresses, and what it writes. */
function threadOfOurOwn(
  watchSocket: NonNullable<FfiPort["watchSocket"]>,
  { address, count }: Descriptors,
  onDone: () => void,
): Waiter {
  const arena = new NativeArena();
  const { loading, sockets, files } = libc();
  const ends = arena.bytes(8, 4);
  if (sockets.socketpair(AF.UNIX, SOCK.STREAM | SOCK.CLOEXEC | SOCK.NONBLOCK, 0, ends.address) !== 0) {
    throw new FfiError("Cannot wait for a descriptor: socketpair failed. Are there too many open files?");
  }
  const [listening = -1, ringing = -1] = new Int32Array(ends.bytes.buffer, ends.bytes.byteOffset, 2);
  let team: ThreadTeam;
  try {
    team = ThreadTeam.start({ threads: 1, rounds: 1, calls: 2 });
  } catch (error) {
    for (const end of [listening, ringing]) files.close(end);
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
    close: () => {
      team.close();
      watch.close();
      files.close(ringing);
      arena.close();
    },
  };
}
