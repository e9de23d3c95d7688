/** Messages and open files are sent between processes, whole, in order, and without leaking a descriptor. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { AF, SOCK } from "../../bindings/libc.ts";
import { FileDescriptor } from "../../src/unix/file_descriptor.ts";
import { SystemError } from "../../src/ffi/system_error.ts";
import { UnixListener } from "../../src/unix/listener.ts";
import { sendMessage } from "../../src/unix/message.ts";
import { UnixSocket } from "../../src/unix/socket.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { runtimes, startIn } from "../support/runtimes.ts";
import { contentOf, fileWith, openFiles } from "../support/open_files.ts";
import { scratchFolder } from "../support/scratch.ts";
import { until } from "../support/until.ts";

const child = new URL("./socket_child.ts", import.meta.url);
let names = 0;
const abstractName = () => `@causeway-test-${process.pid}-${names++}`;
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const bytesOf = (string: string) => new TextEncoder().encode(string);

test("every message sent arrives whole, in order, with its files", async () => {
  const message = fc.record({
    data: fc.uint8Array({ minLength: 1, maxLength: 3000 }),
    files: fc.array(fc.uint8Array({ minLength: 0, maxLength: 30 }), { maxLength: 5 }),
  });
  const [one, other] = UnixSocket.pair();
  const before = openFiles();
  await check(
    fc.asyncProperty(fc.array(message, { maxLength: 12 }), async (messages) => {
      const sending = messages.map(async ({ data, files }) => {
        const descriptors = files.map(fileWith);
        const changed = data.slice();
        const sent = one.send(changed, descriptors);
        changed.fill(0); // it belongs to the caller again
        await sent;
        for (const file of descriptors) file.close();
      });
      for (const { data, files } of messages) {
        const received = await other.receive();
        assert(received !== null);
        assertEquals([...received.data], [...data]);
        assertEquals(received.descriptors.map((file) => [...contentOf(file)]), files.map((file) => [...file]));
        for (const file of received.descriptors) file.close();
      }
      await Promise.all(sending);
    }),
    60,
  );
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
  one.close();
  other.close();
  assert(openFiles() <= before - 2, "both ends are closed");
});

test("a send that does not fit the socket waits until the other side reads, and the event loop continues", async () => {
  const [one, other] = UnixSocket.pair();
  const count = 40;
  let sent = 0;
  const sending = Array.from({ length: count }, (_, i) => one.send(new Uint8Array(65536).fill(i)).then(() => sent++));
  await delay(30);
  assert(sent < count, `${sent} messages of 64 KiB cannot all fit`);
  for (let i = 0; i < count; i++) {
    const message = await other.receive();
    assertEquals([message?.data.length, message?.data[0], message?.data[65535]], [65536, i, i]);
  }
  await Promise.all(sending);
  one.close();
  assertEquals(await other.receive(), null);
  other.close();
});

test("a message that waits to be sent can be cancelled, and the others keep their order", async () => {
  const [one, other] = UnixSocket.pair();
  const stop = new AbortController();
  const sending = Array.from({ length: 12 }, (_, i) => {
    const options = i % 3 === 1 ? { signal: stop.signal } : {};
    return one.send(new Uint8Array(65536).fill(i), [], options).then(() => i, (error: Error) => error.message);
  });
  await delay(20);
  stop.abort(new Error("cancelled"));
  const received: (number | undefined)[] = [];
  const reading = (async () => {
    for (let message = await other.receive(); message !== null; message = await other.receive()) {
      received.push(message.data[0]);
    }
  })();
  const outcomes = await Promise.all(sending);
  one.close();
  await reading;
  other.close();
  assertEquals(received, outcomes.filter((outcome) => typeof outcome === "number"));
  assert(outcomes.includes("cancelled") && received.length >= 8);
  await assertRejects(() => one.send(Uint8Array.of(1), [], { signal: AbortSignal.abort(new Error("never")) }), Error);
});

test("a message that waits to be sent is what it was, whatever its caller does to the bytes and the array", async () => {
  const [one, other] = UnixSocket.pair();
  using file = fileWith(Uint8Array.of(7));
  const sending = Array.from({ length: 12 }, () => one.send(new Uint8Array(65536)));
  const data = Buffer.from([1, 2, 3]);
  const files: FileDescriptor[] = [file];
  sending.push(one.send(data, files));
  data.fill(9);
  files.pop();
  for (let i = 0; i < 12; i++) await other.receive();
  const message = await other.receive();
  await Promise.all(sending);
  assertEquals([...message?.data ?? []], [1, 2, 3]);
  assertEquals(message?.descriptors.length, 1);
  for (const descriptor of message?.descriptors ?? []) descriptor.close();
  for (const end of [one, other]) end.close();
});

for (const runtime of runtimes) {
  for (const kind of ["path", "abstract"] as const) {
    test(
      ...needs(runtime.missing, `files are sent to ${runtime.name} and back over a socket of kind ${kind}`),
      async () => {
        const path = kind === "path" ? join(scratchFolder(), "s") : abstractName();
        const before = openFiles();
        const listener = UnixListener.listen(path);
        if (kind === "path") assert(statSync(path).isSocket());
        const { printed } = startIn(runtime, child, [path]);
        using socket = await listener.accept();
        assert(socket.peer.pid > 0 && socket.peer.pid !== process.pid);
        for (const count of [0, 1, 3, 253]) {
          const files = Array.from({ length: count }, (_, i) => fileWith(Uint8Array.of(i, 7)));
          await socket.send(Uint8Array.of(count), files);
          const answer = await socket.receive();
          assert(answer !== null);
          const report = JSON.parse(text(answer.data)) as { contents: number[][]; data: number[]; parent: number };
          assertEquals(report.data, [count]);
          assertEquals(report.contents, files.map((_, i) => [i, 7]));
          assertEquals(report.parent, process.pid);
          assertEquals(answer.descriptors.map((file) => text(contentOf(file))), [`file of ${socket.peer.pid}`]);
          for (const file of files) assertEquals(text(contentOf(file)), "seen", "it is the same file, no copy");
          for (const file of [...files, ...answer.descriptors]) file.close();
        }
        socket.close();
        await printed;
        listener.close();
        assertEquals(existsSync(path), false);
        // The child's pipes close in their own time.
        await until(() => openFiles() <= before);
        assert(openFiles() <= before, `${openFiles() - before} descriptors are still open`);
      },
    );
  }

  test(...needs(runtime.missing, `a ${runtime.name} that is killed ends the connection`), async () => {
    const path = abstractName();
    using listener = UnixListener.listen(path);
    const { printed } = startIn(runtime, child, [path, "die"]);
    using socket = await listener.accept();
    assertEquals([...(await socket.receive())?.data ?? []], [1]);
    assertEquals(await socket.receive(), null);
    const error = await assertRejects(() => socket.send(Uint8Array.of(1)), SystemError, "The other end is closed");
    assertEquals(error.code, "EPIPE");
    await assertRejects(() => printed, Error, "SIGKILL");
  });
}

test("more files than expected are refused and closed, and the next message arrives", async () => {
  const [one, other] = UnixSocket.pair();
  const files = [1, 2, 3].map((i) => fileWith(Uint8Array.of(i)));
  const before = openFiles();
  await one.send(Uint8Array.of(1), files);
  await one.send(Uint8Array.of(2), files.slice(0, 1));
  await assertRejects(() => other.receive({ maxDescriptors: 2 }), RangeError, "Cannot take 3 descriptors");
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
  const next = await other.receive({ maxDescriptors: 1 });
  assertEquals([...next?.data ?? []], [2]);
  for (const file of [...files, ...next?.descriptors ?? []]) file.close();
  one.close();
  other.close();
});

test("a message that is too long is refused, and its files are closed", async () => {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(8);
  assertEquals(libc().sockets.socketpair(AF.UNIX, SOCK.SEQPACKET | SOCK.NONBLOCK, 0, address), 0);
  const [sender = -1, receiver = -1] = new Int32Array(bytes.buffer, bytes.byteOffset, 2);
  using other = FileDescriptor.adopt(sender);
  using socket = UnixSocket.over(FileDescriptor.adopt(receiver));
  using file = fileWith(Uint8Array.of(1));
  assertEquals(sendMessage(other.number, new Uint8Array(65537), [file.number]), 65537);
  assertEquals(sendMessage(other.number, new Uint8Array(65536), [file.number]), 65536);
  const before = openFiles();
  await assertRejects(() => socket.receive(), RangeError, "more than 65536 bytes");
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
  const message = await socket.receive();
  assertEquals([message?.data.length, message?.descriptors.length], [65536, 1]);
  for (const one of message?.descriptors ?? []) one.close();
});

test("files that do not fit into this process's file table are an error, and the others are closed", async () => {
  const limits = { prlimit64: { args: ["i32", "i32", "ptr", "ptr"], returns: "i32" } } as const;
  const { prlimit64 } = ffiPort().bind("libc.so.6", 0n, limits);
  const [one, other] = UnixSocket.pair();
  const file = fileWith(Uint8Array.of(1));
  await one.send(Uint8Array.of(1), new Array<FileDescriptor>(50).fill(file));
  const before = openFiles();
  using arena = new NativeArena();
  const limit = arena.struct({ now: "u64", most: "u64" });
  const nofile = 7;
  assertEquals(prlimit64(0, nofile, 0n, limit.$address), 0);
  const usual = limit.now;
  const highest = FileDescriptor.adopt(libc().files.memfd_create(bytesOf("x\0"), 1));
  limit.now = BigInt(highest.number + 10);
  highest.close();
  assertEquals(prlimit64(0, nofile, limit.$address, 0n), 0);
  let error: unknown;
  try {
    await other.receive();
  } catch (caught) {
    error = caught;
  } finally {
    limit.now = usual;
    assertEquals(prlimit64(0, nofile, limit.$address, 0n), 0);
  }
  assert(error instanceof SystemError && error.code === "EMFILE", String(error));
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
  for (const one_ of [one, other, file]) one_.close();
});

test("waiting ends by signal or by closing, and loses no message", async () => {
  const [one, other] = UnixSocket.pair();
  const controller = new AbortController();
  const reason = new Error("enough");
  const waiting = other.receive({ signal: controller.signal });
  controller.abort(reason);
  assertEquals(await waiting.catch((error) => error), reason);
  await one.send(Uint8Array.of(5));
  assertEquals([...(await other.receive())?.data ?? []], [5]);
  const forever = other.receive();
  other.close();
  other.close();
  await assertRejects(() => forever, TypeError, "closed UnixSocket");
  await assertRejects(() => other.receive(), TypeError, "closed");
  one.close();
  using listener = UnixListener.listen(abstractName());
  const accepting = listener.accept();
  listener.close();
  await assertRejects(() => accepting, TypeError, "closed UnixListener");
});

test("a client that is not allowed is disconnected", async () => {
  const path = abstractName();
  using listener = UnixListener.listen(path, { allow: ({ pid }) => pid !== process.pid });
  const stop = new AbortController();
  const accepting = listener.accept({ signal: stop.signal });
  using socket = await UnixSocket.connect(path);
  assertEquals(await socket.receive(), null);
  stop.abort(new Error("no client was allowed"));
  await assertRejects(() => accepting, Error, "no client was allowed");
});

test("a client disconnects from a listener that is not allowed", async () => {
  const path = abstractName();
  using listener = UnixListener.listen(path);
  const before = openFiles();
  const connecting = () => UnixSocket.connect(path, { allow: ({ pid }) => pid !== process.pid });
  const error = await assertRejects(connecting, SystemError, `process ${process.pid}`);
  assertEquals(error.code, "EACCES");
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
  using accepted = await listener.accept();
  assertEquals(await accepted.receive(), null);
});

test("connecting waits for a listener as long as its options say", async () => {
  const path = abstractName();
  const error = await assertRejects(() => UnixSocket.connect(path), SystemError, "listening there yet?");
  assertEquals(error.code, "ECONNREFUSED");
  const early = UnixSocket.connect(path, { timeout: 5000 });
  await delay(20);
  using listener = UnixListener.listen(path);
  using accepted = await listener.accept();
  using socket = await early;
  await socket.send(Uint8Array.of(1));
  assertEquals((await accepted.receive())?.data.length, 1);
  const taken = assertThrows(() => UnixListener.listen(path), SystemError, "bind failed with EADDRINUSE");
  assertEquals(taken.code, "EADDRINUSE");
  assert(taken.message.includes("A process listens there"));
});

test("an invalid message, descriptor or path is refused before anything is sent, closed or bound", async () => {
  const [one, other] = UnixSocket.pair();
  for (const length of [0, 65537]) {
    await assertRejects(() => one.send(new Uint8Array(length)), RangeError, "expected 1 to 65536");
  }
  const file = fileWith(Uint8Array.of(1));
  await assertRejects(() => one.send(Uint8Array.of(1), new Array<FileDescriptor>(254).fill(file)), RangeError, "253");
  const number = file.take();
  assertEquals(file.isClosed, true);
  await assertRejects(() => one.send(Uint8Array.of(1), [file]), TypeError, "closed FileDescriptor");
  // A number that is none was sent as 0, the standard input.
  const wrong: unknown[] = [NaN, -1, 2 ** 40, number, "x", null, undefined, { number }, { number: NaN }, [file]];
  for (const descriptor of wrong) {
    const sending = () => one.send(Uint8Array.of(1), [descriptor as FileDescriptor]);
    await assertRejects(sending, TypeError, "expected a FileDescriptor. FileDescriptor.adopt(number)");
  }
  for (const descriptors of ["not an array", null, 5, new Set()]) {
    const sending = () => one.send(Uint8Array.of(1), descriptors as unknown as FileDescriptor[]);
    await assertRejects(sending, TypeError, "as descriptors: expected an array of FileDescriptors");
  }
  for (const data of ["text", [1, 2], new Float32Array(1), new ArrayBuffer(1), null, undefined]) {
    await assertRejects(() => one.send(data as unknown as Uint8Array), TypeError, "expected a Uint8Array. new TextEnc");
  }
  FileDescriptor.adopt(number).close();
  file.close(); // does not close the file that has that number by now
  one.close();
  assertEquals(await other.receive(), null, "none of these messages was sent");
  other.close();
  for (const path of ["", "@", "x".repeat(108)]) {
    assertThrows(() => UnixListener.listen(path), RangeError, "expected 1 to 107");
    await assertRejects(() => UnixSocket.connect(path), RangeError, "expected 1 to 107");
  }
  assertThrows(() => UnixListener.listen("a\0b"), TypeError, "contains NUL");
  for (const fd of [-1, 0.5, 2 ** 31]) assertThrows(() => FileDescriptor.adopt(fd), RangeError, `descriptor ${fd}`);
});

test("a socket is closed where `allow` throws", async () => {
  const path = `@causeway-allow-${process.pid}`;
  const allow = () => {
    throw new RangeError("whom?");
  };
  const before = openFiles();
  {
    using listener = UnixListener.listen(path, { allow });
    using client = await UnixSocket.connect(path);
    await assertRejects(() => listener.accept(), RangeError, "whom?");
    assertEquals(await client.receive(), null, "the other side is closed");
    using open = UnixListener.listen(`${path}-2`);
    await assertRejects(() => UnixSocket.connect(`${path}-2`, { allow }), RangeError, "whom?");
    using accepted = await open.accept();
    assertEquals(await accepted.receive(), null);
  }
  assertEquals(openFiles(), before);
});
