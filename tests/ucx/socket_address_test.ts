/** Addresses of the internet, written as C has them and read back. */
import { assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { readSocketAddress, writeSocketAddress } from "../../src/ucx/socket_address.ts";
import { check, fc } from "../support/property.ts";

const ports = fc.integer({ min: 0, max: 65535 });

/** The bytes that C would see. */
async function written(host: string, port: number): Promise<Uint8Array> {
  using arena = new NativeArena();
  const { addr, addrlen } = await writeSocketAddress(arena, { host, port }, 6);
  return new Uint8Array(ffiPort().memory(addr, addrlen)).slice();
}

test("an IPv4 address is its four bytes and its port, in network byte order, and is read as it was", async () => {
  await check(fc.asyncProperty(fc.ipV4(), ports, async (host, port) => {
    const bytes = await written(host, port);
    const expected = [2, 0, port >> 8, port & 255, ...host.split(".").map(Number), 0, 0, 0, 0, 0, 0, 0, 0];
    assertEquals([...bytes], expected);
    assertEquals(readSocketAddress(bytes), { host, port });
  }));
});

test("an IPv6 address, however it is spelled, is read in the spelling that URLs have", async () => {
  await check(fc.asyncProperty(fc.ipV6(), ports, async (host, port) => {
    fc.pre(URL.canParse(`http://[${host}]/`)); // not all spellings are a URL's
    const bytes = await written(host, port);
    assertEquals([bytes.length, ...bytes.subarray(0, 8)], [28, 10, 0, port >> 8, port & 255, 0, 0, 0, 0]);
    assertEquals(readSocketAddress(bytes), { host: new URL(`http://[${host}]/`).hostname.slice(1, -1), port });
  }));
});

test("a name is looked up, and what is no port or no name is an error", async () => {
  using arena = new NativeArena();
  const { addr, addrlen } = await writeSocketAddress(arena, { host: "localhost", port: 5 }, 4);
  assertEquals(readSocketAddress(new Uint8Array(ffiPort().memory(addr, addrlen))), { host: "127.0.0.1", port: 5 });
  const refused = () => writeSocketAddress(arena, { host: "::1", port: 5 }, 4);
  await assertRejects(refused, TypeError, "Cannot use the IPv6 address ::1");
  for (const port of [-1, 65536, 1.5, NaN]) await assertRejects(() => written("127.0.0.1", port), RangeError, "port");
  await assertRejects(() => written("no.such.name.invalid", 1), Error);
});
