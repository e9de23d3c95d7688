/**
 * Being called back when a descriptor can be read, whatever it is, while the event loop sleeps: without a timer, and
 * without a processor's time until then.
 *
 * In Deno a thread of the runtime is in `poll`. Bun's event loop reads sockets that are given to it: there a thread of
 * our own, which runs no JavaScript, is in `poll` and then writes to one.
 *
 * @module
 */
import { AF, EFD, poll_events, pollfd, SOCK } from "../../bindings/libc.ts";
import { type Bell, cString, FfiError, type FfiPort, ffiPort, libc, NativeArena, struct } from "../ffi/mod.ts";
import type { NativeCall } from "./call_ring.ts";
import { ThreadTeam } from "./thread_team.ts";

/** A watch of one descriptor. */
export interface ReadableWatch {
  /** Calls back once, as soon as the descriptor can be read. Nothing if that is under way already. */
  start(): void;
  /** Whether the process stays alive for a watch that is under way; at first it does. */
  keepAlive(on: boolean): void;
  /** Calls back no more, and lets the descriptor be closed. Closing twice is harmless. */
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
 * Watches a descriptor.
 *
 * @param fd stays open until the watch is closed
 * @throws {FfiError} if there are no descriptors or no threads left
 */
export function watchReadable(fd: number, onReadable: () => void): ReadableWatch {
  const arena = new NativeArena();
  const { files } = libc();
  // What ends a wait: a descriptor that is merely closed would not.
  const stop = files.eventfd(0, EFD.CLOEXEC);
  if (stop < 0) throw new FfiError("Cannot wait for a descriptor: eventfd failed. Are there too many open files?");
  const list = arena.bytes(2 * struct(pollfd).size);
  [fd, stop].forEach((descriptor, i) => {
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
  const waiter = waiterOf(ffiPort(), list.address, () => {
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

function waiterOf(port: FfiPort, descriptors: bigint, onDone: () => void): Waiter {
  const { pollElsewhere, bell } = port;
  if (pollElsewhere !== null) return threadOfTheRuntime(pollElsewhere, descriptors, onDone);
  if (bell !== null) return threadOfOurOwn(bell, descriptors, onDone);
  throw new FfiError("Cannot wait for a descriptor: this runtime neither polls on threads nor takes sockets");
}

function threadOfTheRuntime(
  poll: NonNullable<FfiPort["pollElsewhere"]>,
  descriptors: bigint,
  onDone: () => void,
): Waiter {
  let current: ReturnType<typeof poll> | undefined;
  let isKept = true;
  return {
    wait: () => {
      current = poll(descriptors, 2);
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
function threadOfOurOwn(makeBell: NonNullable<FfiPort["bell"]>, descriptors: bigint, onDone: () => void): Waiter {
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
  const calls: NativeCall[] = [[poll, descriptors, 2n, infinitely], [write, BigInt(ringing), byte, 1n]];
  let isKept = true;
  const bell: Bell = makeBell(listening, () => {
    team.finish();
    onDone();
  });
  return {
    wait: () => team.begin(calls),
    keepAlive: (on) => {
      if (on !== isKept) bell.keepAlive(on);
      isKept = on;
    },
    close: () => {
      team.close();
      bell.close();
      files.close(ringing);
      arena.close();
    },
  };
}
