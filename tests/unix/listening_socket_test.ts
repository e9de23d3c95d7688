/** Another library's listening socket: it stops listening, its connections end, and its descriptors stay valid. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { EPOLL_CTL, errno, libc as tables, SO, SOCK, SOL } from "../../bindings/libc.ts";
import { attempt, FfiError, libc, NativeArena } from "../../src/ffi/mod.ts";
import { DescriptorSet, ListeningSocket, nextDescriptor } from "../../src/unix/mod.ts";
import { FailingCalls } from "../support/failing_calls.ts";

const { accept4, bind, connect, getsockname, listen, recv, setsockopt, socket } = libc().sockets;
const { close, epoll_ctl } = libc().files;
const inet = 2; // AF_INET
const newSocket = () => socket(inet, SOCK.STREAM | SOCK.CLOEXEC, 0);

const loopback = [127, 0, 0, 1];

/** A host and a port, as a `sockaddr_in`. */
function addressOf(arena: NativeArena, host: readonly number[], port: number): bigint {
  const { address, bytes } = arena.bytes(16);
  bytes.set([inet, 0, port >> 8, port & 255, ...host]);
  return address;
}

/** A socket that listens at a port, 0 for any. */
function listening(port: number, host = loopback): { fd: number; port: number } {
  using arena = new NativeArena();
  const [fd, one] = [newSocket(), arena.out("i32")];
  one.value = 1;
  assertEquals(setsockopt(fd, SOL.SOCKET, SO.REUSEADDR, one.$address, 4), 0); // also beside connections
  assertEquals(attempt(() => bind(fd, addressOf(arena, host, port), 16)), 0);
  assertEquals(listen(fd, 8), 0);
  const [found, length] = [arena.bytes(16), arena.out("u32")];
  length.value = 16;
  assertEquals(getsockname(fd, found.address, length.$address), 0);
  return { fd, port: new DataView(found.bytes.buffer, found.bytes.byteOffset).getUint16(2) };
}

/** A connection to a port: a descriptor, or the negative error. */
function connected(port: number, host = loopback): number {
  using arena = new NativeArena();
  const fd = newSocket();
  const code = attempt(() => connect(fd, addressOf(arena, host, port), 16));
  if (code < 0) close(fd);
  return code < 0 ? code : fd;
}

/** What can be read: -1 if nothing yet, 0 at the end. */
function available(fd: number): number {
  using arena = new NativeArena();
  return Number(recv(fd, arena.bytes(8).address, 8n, 0x40)); // MSG_DONTWAIT
}

const isAt = (port: number) => (address: Uint8Array) => address[2] === port >> 8 && address[3] === (port & 255);

test("only the listening socket at an address is found, from a number on", () => {
  const from = nextDescriptor();
  const [one, other] = [listening(0), listening(0)];
  const client = connected(one.port);
  const server = accept4(one.fd, 0n, 0n, SOCK.CLOEXEC);
  assert(ListeningSocket.find(from, isAt(one.port)) !== null);
  assert(ListeningSocket.find(one.fd + 1, isAt(one.port)) === null, "its connection is not listening");
  assert(ListeningSocket.find(from, isAt(other.port)) !== null);
  assert(ListeningSocket.find(from, () => false) === null);
  for (const fd of [one.fd, other.fd, client, server]) close(fd);
  assert(ListeningSocket.find(from, isAt(one.port)) === null);
});

test("connections of another socket that has the port since do not end with it", () => {
  const set = new DescriptorSet();
  const from = nextDescriptor();
  const first = listening(0);
  set.add(first.fd);
  const accept = (fd: number) => {
    const client = connected(first.port);
    const server = accept4(fd, 0n, 0n, SOCK.CLOEXEC);
    set.add(server);
    return { client, server };
  };
  const [old, gone] = [accept(first.fd), accept(first.fd)];
  const found = ListeningSocket.find(from, isAt(first.port));
  found?.stop();
  for (const fd of [gone.client, gone.server]) close(fd); // first, for its client waits for the time
  const { fd: next } = listening(first.port);
  const later = [accept(next), accept(next)]; // with the number of the one that is gone
  assertEquals(found?.endConnections(), 1);
  assertEquals([old, ...later].map(({ client }) => available(client)), [0, -1, -1]);
  for (const { client, server } of [old, ...later]) [client, server].forEach((fd) => close(fd));
  for (const fd of [first.fd, next]) close(fd);
  set.close();
});

test("where there is no memory to stop it, it goes on listening", () => {
  const from = nextDescriptor();
  const { fd, port } = listening(0);
  const found = ListeningSocket.find(from, isAt(port));
  using calls = new FailingCalls(libc(), { loading: tables.loading });
  calls.failNth("calloc", 1, 0n);
  assertThrows(() => found?.stop(), FfiError, "calloc returned NULL");
  const client = connected(port);
  assert(client >= 0);
  for (const one of [fd, client]) close(one);
});

test("its port is free once it is stopped, and its number stays taken, in the sets that it was in", () => {
  const set = new DescriptorSet();
  const from = nextDescriptor();
  const { fd, port } = listening(0);
  set.add(fd);
  ListeningSocket.find(from, isAt(port))?.stop();
  assertEquals(connected(port), -errno.ECONNREFUSED);
  assertEquals(set.hasReadable(), false);
  assert(nextDescriptor() !== fd);
  const again = listening(port);
  assertEquals(epoll_ctl(set.fd, EPOLL_CTL.DEL, fd, 0n), 0); // as its owner will
  assertEquals(close(fd), 0);
  close(again.fd);
  set.close();
});

test("the connections that it accepted end, whoever has them in the same set, and no others", () => {
  const set = new DescriptorSet();
  const from = nextDescriptor();
  const [own, other] = [listening(0), listening(0)];
  set.add(own.fd);
  const accepted = [own, own, other].map(({ fd, port }) => {
    const client = connected(port);
    const server = accept4(fd, 0n, 0n, SOCK.CLOEXEC);
    set.add(server);
    return { client, server };
  });
  const found = ListeningSocket.find(from, isAt(own.port));
  assertEquals(found?.endConnections(), 2);
  assertEquals(accepted.map(({ client }) => available(client)), [0, 0, -1]);
  assertEquals(accepted.map(({ server }) => available(server)), [0, 0, -1]);
  for (const { server } of accepted) close(server);
  assertEquals(found?.endConnections(), 0);
  const late = connected(own.port);
  assert(late >= 0, "it goes on listening");
  for (const fd of [late, own.fd, other.fd, ...accepted.map(({ client }) => client)]) close(fd);
  set.close();
});

test("connections to the same port of another address do not end with it, but those to any address do if it has all", () => {
  const other = [127, 0, 0, 2];
  for (const isEverywhere of [false, true]) {
    const set = new DescriptorSet();
    const from = nextDescriptor();
    const own = listening(0, isEverywhere ? [0, 0, 0, 0] : loopback);
    const listeners = [own, isEverywhere ? own : listening(own.port, other)];
    set.add(own.fd);
    const accepted = listeners.map(({ fd, port }, i) => {
      const client = connected(port, i === 0 ? loopback : other);
      const server = accept4(fd, 0n, 0n, SOCK.CLOEXEC);
      set.add(server);
      return { client, server };
    });
    const found = ListeningSocket.find(from, isAt(own.port));
    found?.stop();
    assertEquals(found?.endConnections(), isEverywhere ? 2 : 1);
    assertEquals(accepted.map(({ client }) => available(client)), [0, isEverywhere ? 0 : -1]);
    for (const { client, server } of accepted) [client, server].forEach((fd) => close(fd));
    for (const fd of new Set(listeners.map(({ fd }) => fd))) close(fd);
    set.close();
  }
});
