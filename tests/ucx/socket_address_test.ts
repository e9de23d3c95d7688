/** Internet addresses, written as in C and read back. */
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { test } from "node:test";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { SystemError } from "../../src/ffi/system_error.ts";
import {
  checkFamily,
  lookUp,
  numericHost,
  readSocketAddress,
  writeSocketAddress,
} from "../../src/ucx/listen/socket_address.ts";
import { check, fc } from "../support/property.ts";

const ports = fc.integer({ min: 0, max: 65535 });

/** The bytes as C sees them. */
function written(host: string, port: number): Uint8Array {
  using arena = new NativeArena();
  const { addr, addrlen } = writeSocketAddress(arena, { host, port });
  return new Uint8Array(ffiPort().memory(addr, addrlen)).slice();
}

test("an IPv4 address is its four bytes and its port, in network byte order, and is read back unchanged", async () => {
  await check(fc.property(fc.ipV4(), ports, (host, port) => {
    const bytes = written(host, port);
    const expected = [2, 0, port >> 8, port & 255, ...host.split(".").map(Number), 0, 0, 0, 0, 0, 0, 0, 0];
    assertEquals([...bytes], expected);
    assertEquals(readSocketAddress(bytes), { host, port });
  }));
});

test("an IPv6 address in any spelling is read back in the spelling of URLs", async () => {
  await check(fc.property(fc.ipV6(), ports, (host, port) => {
    fc.pre(URL.canParse(`http://[${host}]/`)); // not all spellings are valid in a URL
    const bytes = written(host, port);
    assertEquals([bytes.length, ...bytes.subarray(0, 8)], [28, 10, 0, port >> 8, port & 255, 0, 0, 0, 0]);
    assertEquals(readSocketAddress(bytes), { host: new URL(`http://[${host}]/`).hostname.slice(1, -1), port });
  }));
});

test("an address has its interface by name or number, which is read back as a number", () => {
  assertEquals(readSocketAddress(written("fe80::1%lo", 5)), { host: "fe80::1%1", port: 5 }); // lo is the first of all
  assertEquals(readSocketAddress(written("fe80::1%7", 5)), { host: "fe80::1%7", port: 5 });
  assertThrows(() => written("127.0.0.1", "8080" as never), RangeError, 'Cannot use port "8080"'); // of an environment
  assertThrows(() => written("fe80::1%nosuch", 5), TypeError, "no interface nosuch");
  assertThrows(() => written("fe80::1%4294967297", 5), TypeError, "no interface 4294967297"); // not 1
});

test("other names than localhost are looked up; an invalid port or name is an error", async () => {
  assertEquals([0, 4, 6].map((family) => numericHost("localhost", family as 0 | 4 | 6)), [
    "127.0.0.1",
    "127.0.0.1",
    "::1",
  ]);
  assertEquals([numericHost("::1", 4), numericHost("example.org", 0)], ["::1", null]);
  assertEquals(await lookUp("10.0.0.1", 6), "10.0.0.1");
  // Bun's own error said only that some name was not found.
  await assertRejects(() => lookUp("no.such.name.invalid", 0), SystemError, "the host no.such.name.invalid");
  for (const port of [-1, 65536, 1.5, NaN]) assertThrows(() => written("127.0.0.1", port), RangeError, "port");
});

test("only addresses of the family of UCX's own connections are given to UCX", () => {
  checkFamily("127.0.0.1", 4);
  checkFamily("::1", 6);
  assertThrows(() => checkFamily("::1", 4), TypeError, "Cannot use the IPv6 address ::1");
  assertThrows(() => checkFamily("127.0.0.1", 6), TypeError, "Cannot use the IPv4 address 127.0.0.1");
});
