/** What the system says of descriptors by which a runtime learns of its sockets, against what was done to them. */
import { assert, assertEquals } from "@std/assert";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { EFD } from "../../bindings/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { libc, NativeArena } from "../../src/ffi/mod.ts";
import { DescriptorSet } from "../../src/unix/descriptor_set.ts";
import { findSocketNews } from "../../src/unix/socket_news.ts";
import { check, fc } from "../support/property.ts";

/** As sys/socket.h has them on Linux. */
const [AF_INET, SOCK_STREAM] = [2, 1] as const;

/** Has the runtime look at its own sockets, so that what is said is about those of the test. */
async function quiet(hasNews: () => boolean): Promise<void> {
  for (let i = 0; i < 100 && hasNews(); i++) await (ffiPort().turnWithSockets?.() ?? pause(1));
}

/** Sets of one descriptor each, which can be written and read. */
function sets(count: number) {
  const { files } = libc();
  const arena = new NativeArena();
  const { address } = arena.bytes(8);
  const made = Array.from({ length: count }, () => {
    const fd = files.eventfd(0, EFD.CLOEXEC);
    const set = new DescriptorSet();
    set.add(fd);
    const close = () => {
      set.close();
      files.close(fd);
    };
    return { write: () => files.eventfd_write(fd, 1n), read: () => files.eventfd_read(fd, address), close };
  });
  return { made, [Symbol.dispose]: () => arena.close() };
}

test("there is news as long as something can be read of one of the sets that were there, and is open", async () => {
  const steps = fc.array(fc.tuple(fc.nat(3), fc.constantFrom("write", "read", "close")), { maxLength: 12 });
  await check(
    fc.asyncProperty(steps, async (todo) => {
      using all = sets(4);
      const hasNews = findSocketNews();
      assert(hasNews !== null);
      using later = sets(1);
      later.made[0]?.write(); // made after it was looked for: of no account
      const states = all.made.map(() => ({ isFull: false, isOpen: true }));
      for (const [i, what] of todo) {
        const [set, state] = [all.made[i], states[i]];
        if (set === undefined || state === undefined || !state.isOpen) continue;
        if (what === "write") set.write();
        else if (what === "close") set.close();
        else if (state.isFull) set.read();
        else continue;
        Object.assign(state, { isFull: what === "write", isOpen: what !== "close" });
        const expected = states.some(({ isFull, isOpen }) => isFull && isOpen);
        if (!expected) await quiet(hasNews);
        assertEquals(hasNews(), expected, JSON.stringify(states));
      }
      for (const [i, { isOpen }] of states.entries()) if (isOpen) all.made[i]?.close();
      later.made[0]?.close();
    }),
    30,
  );
});

test("a connection to a server of the runtime's is news until the event loop has looked at it", async () => {
  const { socket, connect } = libc().sockets;
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const connected = once(server, "connection");
  const hasNews = findSocketNews();
  assert(hasNews !== null);
  await quiet(hasNews);
  assertEquals(hasNews(), false);
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(16); // struct sockaddr_in
  const { port } = server.address() as AddressInfo;
  bytes.set([AF_INET, 0, port >> 8, port & 255, 127, 0, 0, 1]);
  const client = socket(AF_INET, SOCK_STREAM, 0);
  assertEquals(connect(client, address, bytes.length), 0);
  assertEquals(hasNews(), true);
  const [there] = await connected as [Socket];
  await quiet(hasNews);
  assertEquals(hasNews(), false);
  there.destroy();
  libc().files.close(client);
  server.close();
});
