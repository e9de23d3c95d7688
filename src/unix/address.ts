/**
 * Addresses of Unix domain sockets.
 *
 * @module
 */
import { AF, sockaddr_un } from "../../bindings/libc.ts";
import { layoutOf, type NativeArena } from "../ffi/mod.ts";
import { show } from "../layout/mod.ts";

const { sun_path } = layoutOf(sockaddr_un).offsets;
const pathBytes = sockaddr_un.sun_path[1];

/** Whether an address is a kernel name and not a file: it begins with `@`, as tools print it. */
export function isAbstract(path: string): boolean {
  return path.startsWith("@");
}

/**
 * Rejects what cannot be an address.
 *
 * @throws {RangeError} for a path that is empty or too long
 * @throws {TypeError} for one that contains NUL, at which C would truncate it
 */
export function checkAddress(path: string): void {
  if (typeof path !== "string") throw new TypeError(`Expected the path of a socket, got ${show(path)}`);
  if (path.includes("\0")) throw new TypeError(`Cannot use the socket ${JSON.stringify(path)}: it contains NUL`);
  const bytes = new TextEncoder().encode(path).length;
  if (bytes > 0 && path !== "@" && bytes < pathBytes) return;
  throw new RangeError(`Cannot use a socket path of ${bytes} bytes: expected 1 to ${pathBytes - 1}`);
}

/** Writes a `struct sockaddr_un`. */
export function writeAddress(arena: NativeArena, path: string): { readonly address: bigint; readonly length: number } {
  checkAddress(path);
  const name = new TextEncoder().encode(path);
  const socket = arena.struct(sockaddr_un);
  socket.sun_family = AF.UNIX;
  socket.sun_path.set(name);
  if (isAbstract(path)) socket.sun_path[0] = 0; // marks it for the kernel; every byte of the length belongs to the name
  return { address: socket.$address, length: sun_path + name.length + (isAbstract(path) ? 0 : 1) };
}
