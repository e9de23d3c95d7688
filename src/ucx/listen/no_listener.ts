/**
 * Why listening on an address failed: the same error, whether UCX or this package tried.
 *
 * @module
 */
import { errno, SOCK } from "../../../bindings/libc.ts";
import { attempt, libc, NativeArena, SystemError } from "../../ffi/mod.ts";
import { FileDescriptor } from "../../unix/mod.ts";
import { formatHostAndPort, type HostAndPort, writeSocketAddress } from "./socket_address.ts";

/** Remedies, by `errno`. */
const ways: { readonly [code: number]: (at: HostAndPort) => string } = {
  [errno.EADDRINUSE]: () => "The port is taken: choose another one, or 0 for any free port",
  [errno.EADDRNOTAVAIL]: ({ host }) =>
    `${host} is not an address of this machine: "${host.includes(":") ? "::" : "0.0.0.0"}" stands for all of them`,
  [errno.EACCES]: () => "Low ports are reserved for privileged processes: choose another one, or 0 for any free port",
};

// law ucx/cannotListen: ucx/tcp_connection, ucx/listener
/**
 * The error.
 *
 * @param call the call that failed, with this `code`
 * @param more a further hint, a sentence without full stop
 */
export function cannotListen(
  at: HostAndPort,
  call: string,
  code: number,
  more?: string,
  options?: ErrorOptions,
): SystemError {
  const hint = [ways[code]?.(at), more].filter((sentence) => sentence !== undefined).join(". ");
  return new SystemError(`listen at ${formatHostAndPort(at)}`, call, code, hint, options);
}

// law ucx/whyNotBound: ucx/listener
/** The `errno` with which the system refuses an address now; 0 if it does not. UCX reports most as just an error. */
export function whyNotBound(at: HostAndPort): number {
  using arena = new NativeArena();
  const { family, addr, addrlen } = writeSocketAddress(arena, at);
  const { sockets } = libc();
  const number = attempt(() => sockets.socket(family, SOCK.STREAM | SOCK.CLOEXEC, 0));
  if (number < 0) return 0; // its own shortage is for UCX to report
  using _descriptor = FileDescriptor.adopt(number);
  return -Math.min(0, attempt(() => sockets.bind(number, addr, addrlen)));
}
