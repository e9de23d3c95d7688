/**
 * Internet addresses in C's representation: `struct sockaddr_in` and `sockaddr_in6`.
 *
 * @module
 */
import { show } from "../../layout/mod.ts";
import { AF, sockaddr_in, sockaddr_in6 } from "../../../bindings/ucp_types.ts";
import {
  cString,
  ffiPort,
  libc,
  littleEndian,
  type NativeArena,
  nodeBuiltin,
  struct,
  SystemError,
} from "../../ffi/mod.ts";

/** Where a program listens. */
export interface HostAndPort {
  /** A name, an IPv4 address, or an IPv6 address without brackets. */
  readonly host: string;
  /** 0 to 65535. */
  readonly port: number;
}

/** An address in native memory. */
export interface SocketAddress {
  /** The address family, an `AF`. */
  readonly family: number;
  readonly addr: bigint;
  readonly addrlen: number;
}

/** Size of a `struct sockaddr_storage` in bytes. */
export const storageBytes = 128;

/** A host and port in the usual notation. */
export function formatHostAndPort({ host, port }: HostAndPort): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The address of this machine for its own programs. No name server is asked for it (RFC 6761). */
const localhost = { 0: "127.0.0.1", 4: "127.0.0.1", 6: "::1" } as const;

// law ucx/numericHost: ucx/socket_address
/**
 * The address of a host that needs no lookup.
 *
 * @param family the address family for `localhost`; 0 for any
 * @returns null for any other name
 */
export function numericHost(host: string, family: 0 | 4 | 6): string | null {
  if (host === "localhost") return localhost[family];
  return nodeBuiltin("node:net").isIP(host) === 0 ? null : host;
}

/**
 * The address of a host, resolved if it is a name.
 *
 * @param family the address family; 0 for any
 * @throws {FfiError} where the runtime requires a permission that was not granted
 * @throws {SystemError} if the name does not resolve; Bun's own error would not say which name
 */
export async function lookUp(host: string, family: 0 | 4 | 6): Promise<string> {
  const numeric = numericHost(host, family);
  if (numeric !== null) return numeric;
  ffiPort().needNetwork(`look up ${host}`, host);
  try {
    return (await nodeBuiltin("node:dns/promises").lookup(host, { family })).address;
  } catch (cause) {
    const code = Object(cause).code ?? "EAI_FAIL";
    throw new SystemError(`look up the host ${host}`, "getaddrinfo", String(code), "", { cause });
  }
}

// law ucx/checkFamily: ucx/socket_address
/**
 * Checks that UCX can use an address. Given an IPv6 one where its own TCP connections use IPv4, it writes past the end
 * of its memory (`uct_tcp_ep_set_dest_addr`: valgrind shows it in 1.13.1, and 1.22.0 crashes). The other way round the
 * connection fails (1.22.0).
 *
 * @throws {TypeError} if it cannot
 */
export function checkFamily(address: string, family: 4 | 6): void {
  if (nodeBuiltin("node:net").isIP(address) === family) return;
  throw new TypeError(
    family === 4
      ? `Cannot use the IPv6 address ${address}: UCX connects by IPv4 here. With UCX 1.17 or newer, open it with ` +
        '{ config: { TCP_AF_PRIO: "inet6" } }, with 1.14 to 1.16 set UCX_TCP_AF_PRIO=inet6.'
      : `Cannot use the IPv4 address ${address}: UCX connects by IPv6 here, as TCP_AF_PRIO says. ` +
        "Use an IPv6 address, or a context without that setting.",
  );
}

/** @throws {RangeError} unless it is the number of a port */
export function checkPort(port: number): void {
  if (Number.isInteger(port) && port >= 0 && port <= 65535) return;
  throw new RangeError(`Cannot use port ${show(port)}: expected an integer from 0 to 65535`);
}

// law ucx/writeSocketAddress: ucx/socket_address
/**
 * Writes an address to native memory.
 *
 * @param at with a numeric host
 * @throws {RangeError} if the port is invalid
 * @throws {TypeError} if the interface that the address names (`%eth0`) does not exist
 */
export function writeSocketAddress(arena: NativeArena, { host, port }: HostAndPort): SocketAddress {
  checkPort(port);
  const networkPort = (port & 255) << 8 | port >> 8;
  if (nodeBuiltin("node:net").isIP(host) === 4) {
    const at = arena.struct(sockaddr_in);
    at.sin_family = AF.INET;
    at.sin_port = networkPort;
    at.sin_addr.s_addr = host.split(".").reduce((sum, byte, i) => sum + Number(byte) * 2 ** (8 * i), 0);
    return { family: AF.INET, addr: at.$address, addrlen: struct(sockaddr_in).size };
  }
  const at = arena.struct(sockaddr_in6);
  at.sin6_family = AF.INET6;
  at.sin6_port = networkPort;
  at.sin6_addr.set(bytesOfIpv6(host));
  at.sin6_scope_id = zoneOf(host);
  return { family: AF.INET6, addr: at.$address, addrlen: struct(sockaddr_in6).size };
}

/** The index of the interface that follows an address, by name or number; 0 if there is none. */
function zoneOf(host: string): number {
  const [, zone] = host.split("%");
  if (zone === undefined) return 0;
  const index = /^\d+$/.test(zone) ? Number(zone) : libc().sockets.if_nametoindex(cString(zone));
  if (index === 0 || index >= 2 ** 32) {
    throw new TypeError(`Cannot use the address ${host}: this machine has no interface ${zone}`);
  }
  return index;
}

/** Reads a `struct sockaddr_storage`. */
export function readSocketAddress(bytes: Uint8Array): HostAndPort {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const port = view.getUint16(2);
  if (view.getUint16(0, true) === AF.INET) return { host: Array.from(bytes.subarray(4, 8)).join("."), port };
  const groups = Array.from({ length: 8 }, (_, i) => view.getUint16(8 + 2 * i).toString(16));
  const zone = view.getUint32(24, littleEndian);
  return { host: zone === 0 ? shortest(groups) : `${shortest(groups)}%${zone}`, port };
}

/** The sixteen bytes of an IPv6 address, which node:net has validated. */
function bytesOfIpv6(text: string): Uint8Array {
  // A trailing IPv4 address stands for the last two groups.
  const plain = text.replace(/%.*$/, "").replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => {
    const group = (high: string, low: string) => (Number(high) * 256 + Number(low)).toString(16);
    return `${group(a, b)}:${group(c, d)}`;
  });
  const [head = "", tail] = plain.split("::");
  const groups = (part: string) => part === "" ? [] : part.split(":");
  const [first, last] = [groups(head), groups(tail ?? "")];
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - first.length - last.length }, () => "0");
  const bytes = new Uint8Array(16);
  [...first, ...zeros, ...last].forEach((group, i) => new DataView(bytes.buffer).setUint16(2 * i, parseInt(group, 16)));
  return bytes;
}

/** The usual spelling: the longest run of at least two zeros, the first one if several, becomes `::`. */
function shortest(groups: readonly string[]): string {
  let [start, length] = [0, 1];
  for (let i = 0; i < 8; i++) {
    let n = 0;
    while (groups[i + n] === "0") n++;
    if (n > length) [start, length] = [i, n];
  }
  if (length < 2) return groups.join(":");
  return `${groups.slice(0, start).join(":")}::${groups.slice(start + length).join(":")}`;
}
