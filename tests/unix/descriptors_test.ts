/**
 * Two laws of file descriptors: no program that is started inherits one, and no call that fails, or is refused, leaves
 * one open. And one law of waits for them: an ended wait leaves nothing behind.
 */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { readFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { AF, errno, libc as tables, SOCK } from "../../bindings/libc.ts";
import { abortable } from "../../src/unix/abortable.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { FileDescriptor } from "../../src/unix/file_descriptor.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { untilReady } from "../../src/unix/poll.ts";
import { littleEndian } from "../../src/ffi/endian.ts";
import { attempt, SystemError } from "../../src/ffi/system_error.ts";
import { readTextFile } from "../../src/ffi/text_file.ts";
import { UnixListener } from "../../src/unix/listener.ts";
import { receiveMessage, sendMessage } from "../../src/unix/message.ts";
import { UnixSocket } from "../../src/unix/socket.ts";
import { patiently, runScript } from "../support/child.ts";
import { errorsOf, FailingCalls } from "../support/failing_calls.ts";
import { check, fc } from "../support/property.ts";
import { contentOf, filesByDescriptor, fileWith, openFiles } from "../support/open_files.ts";

let names = 0;
const abstractName = () => `@causeway-descriptors-${process.pid}-${names++}`;

/** Whether a descriptor closes on exec, as the kernel sees it. */
function closesOnExec(number: number): boolean {
  const flags = /flags:\s*([0-7]+)/.exec(readFileSync(`/proc/self/fdinfo/${number}`, "utf8"))?.[1] ?? "0";
  return (Number.parseInt(flags, 8) & 0o2000000) !== 0; // O_CLOEXEC
}

/** The descriptors of a pair of connected sockets that nothing waits on. */
function rawPair(arena: NativeArena): [number, number] {
  const { address, bytes } = arena.bytes(8);
  assertEquals(libc().sockets.socketpair(AF.UNIX, SOCK.SEQPACKET | SOCK.NONBLOCK | SOCK.CLOEXEC, 0, address), 0);
  const [one = -1, other = -1] = new Int32Array(bytes.buffer, bytes.byteOffset, 2);
  return [one, other];
}

test("no program that is started inherits a descriptor, however it was opened", async () => {
  const before = filesByDescriptor();
  const path = abstractName();
  using listener = UnixListener.listen(path);
  using socket = await UnixSocket.connect(path);
  using accepted = await listener.accept();
  const [one, other] = UnixSocket.pair();
  using file = fileWith(Uint8Array.of(1));
  await one.send(Uint8Array.of(1), [file]);
  const message = await other.receive();
  // A thread of the runtime may have closed one of before, so that a number alone does not tell them apart.
  const opened = [...filesByDescriptor()]
    .filter(([number, file]) => before.get(number) !== file && /^(socket:|\/memfd:causeway)/.test(file));
  assertEquals(opened.length, 7, `${opened}`);
  assertEquals(opened.filter(([number]) => !closesOnExec(number)), []);
  for (const one of message?.descriptors ?? []) one.close();
  for (const end of [one, other, socket, accepted]) end.close();
});

test("a call that fails or is refused leaves no file open", async () => {
  const times = 20;
  const path = abstractName();
  using taken = UnixListener.listen(path);
  const nowhere = abstractName();
  const ways: Record<string, () => unknown> = {
    "listening at a path in use": () => assertThrows(() => UnixListener.listen(path), SystemError, "EADDRINUSE"),
    "connecting without a listener": () =>
      assertRejects(() => UnixSocket.connect(nowhere, { timeout: 30 }), SystemError, "ECONNREFUSED"),
    "reading a text": () => assert((readTextFile("/proc/self/stat") ?? "") !== ""),
    "reading no text": () => assertEquals(readTextFile("/nonexistent"), null),
  };
  for (const [what, way] of Object.entries(ways)) {
    const before = openFiles();
    for (let i = 0; i < times; i++) await way();
    assert(openFiles() <= before, `${what}: ${openFiles() - before} are left`);
  }
  assertEquals(taken.path, path);
});

test("a client that is not allowed is disconnected at once, not when the garbage is collected", async () => {
  const path = abstractName();
  let asked = 0;
  using listener = UnixListener.listen(path, { allow: () => ++asked < 0 });
  const stop = new AbortController();
  const accepting = listener.accept({ signal: stop.signal });
  const before = openFiles();
  const clients = await Promise.all(Array.from({ length: 30 }, () => UnixSocket.connect(path)));
  while (asked < clients.length) await nextTurn();
  assertEquals(openFiles() - before, clients.length);
  for (const client of clients) assertEquals(await client.receive(), null);
  for (const client of clients) client.close();
  stop.abort(new Error("no client was allowed"));
  await assertRejects(() => accepting, Error, "no client was allowed");
});

test("waits to connect and to send can be cancelled", async () => {
  const stop = new AbortController();
  const connecting = UnixSocket.connect(abstractName(), { timeout: 1e9, signal: stop.signal });
  stop.abort(new Error("enough"));
  await assertRejects(() => connecting, Error, "enough");
  const [one, other] = UnixSocket.pair();
  await assertRejects(
    () => one.send(Uint8Array.of(1), [], { signal: AbortSignal.abort(new Error("never")) }),
    Error,
    "never",
  );
  await one.send(Uint8Array.of(2));
  assertEquals((await other.receive())?.data, Uint8Array.of(2));
  for (const end of [one, other]) end.close();
});

test("of a message's control data only descriptors are taken for files", () => {
  const SO_PASSCRED = 16; // the kernel reports a message's sender: three numbers, none of them a descriptor
  const { setsockopt } = ffiPort().bind("libc.so.6", 0n, {
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  });
  check(
    fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 9 }), { maxLength: 6 }), (contents) => {
      using arena = new NativeArena();
      const [one, other] = rawPair(arena);
      const yes = arena.bytes(4);
      yes.bytes[0] = 1;
      assertEquals(setsockopt(other, 1, SO_PASSCRED, yes.address, 4), 0); // SOL_SOCKET
      const files = contents.map(fileWith);
      const before = openFiles();
      assertEquals(sendMessage(one, Uint8Array.of(7), files.map(({ number }) => number)), 1);
      const arrival = receiveMessage(other);
      assert(arrival.kind === "message");
      assertEquals(arrival.descriptors.map((file) => [...contentOf(file)]), contents.map((bytes) => [...bytes]));
      assertEquals(openFiles() - before, files.length);
      for (const file of [...files, ...arrival.descriptors]) file.close();
      for (const end of [one, other]) FileDescriptor.adopt(end).close();
    }),
    30,
  );
});

test("a call that a signal interrupts is repeated, any other failure is an error", () => {
  const place = new DataView(ffiPort().memory(libc().sockets.__errno_location(), 4));
  const codes = fc.constantFrom(errno.EINTR, errno.EAGAIN, errno.EPIPE, errno.ENOENT);
  check(
    fc.property(fc.array(codes, { maxLength: 8 }), fc.nat(), (failures, result) => {
      let calls = 0;
      const answer = attempt(() => {
        const code = failures[calls++];
        if (code === undefined) return result;
        place.setInt32(0, code, littleEndian);
        return -1;
      });
      const reported = failures.findIndex((code) => code !== errno.EINTR);
      assertEquals(answer, reported < 0 ? result : -(failures[reported] ?? 0));
      assertEquals(calls, (reported < 0 ? failures.length : reported) + 1);
    }),
  );
});

/** A signal that counts its listeners. */
function counted(): { readonly stop: AbortController; readonly listeners: () => number } {
  const stop = new AbortController();
  const { signal } = stop;
  let listeners = 0;
  const [add, remove] = [signal.addEventListener, signal.removeEventListener];
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add.apply(signal, args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove.apply(signal, args);
  };
  return { stop, listeners: () => listeners };
}

test("a wait that has ended no longer listens to its signal", async () => {
  using arena = new NativeArena();
  const [one, other] = rawPair(arena);
  const { stop, listeners } = counted();
  for (let i = 0; i < 5; i++) {
    await untilReady(one, "writable", stop.signal);
    assertEquals(await abortable(Promise.resolve(i), stop.signal), i);
    await assertRejects(() => abortable(Promise.reject(new Error("failed")), stop.signal), Error, "failed");
  }
  assertEquals(listeners(), 0);
  for (const end of [one, other]) FileDescriptor.adopt(end).close();
});

test("a wait for which there is no memory fails, and later ones do not", async () => {
  using arena = new NativeArena();
  const [one, other] = rawPair(arena);
  const { stop, listeners } = counted();
  using calls = new FailingCalls(libc(), { loading: tables.loading });
  const wait = () => untilReady(one, "writable", stop.signal);
  calls.failNth("calloc", 1, 0n);
  const { thrown, stray } = await errorsOf(wait);
  assertInstanceOf(thrown, FfiError, String(thrown));
  assertEquals(stray, []);
  await wait();
  assertEquals(listeners(), 0);
  for (const end of [one, other]) FileDescriptor.adopt(end).close();
});

test("an attempt to connect for which there is no memory leaves no descriptor open", async () => {
  using listener = UnixListener.listen(abstractName());
  const before = openFiles();
  using calls = new FailingCalls(libc(), { loading: tables.loading });
  for (let nth = 1; nth <= 2; nth++) { // for the address of the listener, and to find out whose it is
    calls.failNth("calloc", nth, 0n);
    await assertRejects(() => UnixSocket.connect(listener.path), FfiError);
    assert(openFiles() <= before, `allocation ${nth}`);
  }
});

test("a cancelled wait does not keep the process alive", patiently, async () => {
  const { code, signal, stderr } = await runScript(new URL("./ended_wait_child.ts", import.meta.url));
  assertEquals([code, signal], [0, null], stderr);
});
