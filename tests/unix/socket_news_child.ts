/**
 * Prints whether a connection to one of the runtime's servers is reported: before it exists, once it does, and after
 * the event loop has handled it. In a separate process, because sockets that other tests leave open have news, too.
 */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { ffiPort } from "../../src/ffi/port.ts";
import { libc, NativeArena } from "../../src/ffi/mod.ts";
import { findSocketNews } from "../../src/unix/socket_news.ts";

/** As in Linux's sys/socket.h. */
const [AF_INET, SOCK_STREAM] = [2, 1] as const;

const server = createServer().listen(0, "127.0.0.1");
await once(server, "listening");
const connected = once(server, "connection");
const hasNews = findSocketNews();
if (hasNews === null) throw new Error("No descriptor was found");

/** Makes the runtime look at its sockets. */
async function quiet(): Promise<boolean> {
  for (let i = 0; i < 100 && hasNews?.(); i++) await (ffiPort().turnWithSockets?.() ?? pause(1));
  return hasNews?.() ?? true;
}

const before = await quiet();
using arena = new NativeArena();
const { address, bytes } = arena.bytes(16); // struct sockaddr_in
const { port } = server.address() as AddressInfo;
bytes.set([AF_INET, 0, port >> 8, port & 255, 127, 0, 0, 1]);
const client = libc().sockets.socket(AF_INET, SOCK_STREAM, 0);
if (libc().sockets.connect(client, address, bytes.length) !== 0) throw new Error("No server listens");
const there = hasNews();
const [socket] = await connected as [Socket];
const after = await quiet();
socket.destroy();
console.log(JSON.stringify([before, there, after]));
process.exit(0);
