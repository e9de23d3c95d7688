/**
 * Addresses of the internet as C has them: `struct sockaddr_in` and `sockaddr_in6`.
 *
 * @module
 */
import { AF, sockaddr_in, sockaddr_in6 } from "../../bindings/ucp_types.ts";
import { type NativeArena, nodeBuiltin, struct } from "../ffi/mod.ts";

/** Where a program listens. */
export interface HostAndPort {
  /** A name, an IPv4 address, or an IPv6 address without brackets. */
  readonly host: string;
  /** 0 to 65535. */
  readonly port: number;
}

/** An address in memory. */
export interface SocketAddress {
  readonly addr: bigint;
  readonly addrlen: number;
}

// law ucx/writeSocketAddress: ucx/socket_address
/**
 * Writes an address whose host is a number, or finds out the number of a name.
 *
 * @param family of UCX's own connections over TCP: with an address of the other one, UCX writes past the end of its
 *   memory (`uct_tcp_ep_set_dest_addr`: valgrind shows it in 1.13.1, and 1.22.0 crashes)
 * @throws {RangeError} if the port is none
 * @throws {TypeError} for an IPv6 address where UCX uses IPv4
 * @throws {Error} if nothing is known by the name, as node:dns says it
 */
export async function writeSocketAddress(
  arena: NativeArena,
  { host, port }: HostAndPort,
  family: 4 | 6,
): Promise<SocketAddress> {
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new RangeError(`Cannot use port ${port}: expected an integer from 0 to 65535`);
  }
  const { isIP } = nodeBuiltin("node:net");
  const literal = isIP(host) === 0 ? (await nodeBuiltin("node:dns/promises").lookup(host, { family })).address : host;
  if (isIP(literal) === 6 && family === 4) {
    throw new TypeError(
      `Cannot use the IPv6 address ${literal}: UCX connects by IPv4 here. With UCX 1.14 or newer, open it with ` +
        '{ config: { TCP_AF_PRIO: "inet6" } }.',
    );
  }
  const networkPort = (port & 255) << 8 | port >> 8;
  if (isIP(literal) === 4) {
    const at = arena.struct(sockaddr_in);
    at.sin_family = AF.INET;
    at.sin_port = networkPort;
    at.sin_addr.s_addr = literal.split(".").reduce((sum, byte, i) => sum + Number(byte) * 2 ** (8 * i), 0);
    return { addr: at.$address, addrlen: struct(sockaddr_in).size };
  }
  const at = arena.struct(sockaddr_in6);
  at.sin6_family = AF.INET6;
  at.sin6_port = networkPort;
  at.sin6_addr.set(bytesOfIpv6(literal));
  return { addr: at.$address, addrlen: struct(sockaddr_in6).size };
}

/** Reads a `struct sockaddr_storage`. */
export function readSocketAddress(bytes: Uint8Array): HostAndPort {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const port = view.getUint16(2);
  if (view.getUint16(0, true) === AF.INET) return { host: Array.from(bytes.subarray(4, 8)).join("."), port };
  const groups = Array.from({ length: 8 }, (_, i) => view.getUint16(8 + 2 * i).toString(16));
  return { host: shortest(groups), port };
}

/** The sixteen bytes of an IPv6 address, which node:net has found to be one. */
function bytesOfIpv6(text: string): Uint8Array {
  // What ends as an IPv4 address has that for its last two groups.
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

/** The usual spelling: the longest run of at least two zeros, the first one of several, is `::`. */
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
