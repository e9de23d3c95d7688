/**
 * Accepting a listener's connections: `native_acceptor.ts` is UCX's own, `secret_acceptor.ts` requires a secret.
 *
 * @module
 */
import type { HostAndPort } from "./socket_address.ts";

/** Accepts connections on a port, until it is closed. */
export interface Acceptor extends HostAndPort {
  close(): void;
}

/** What every acceptor needs from its listener. */
export interface AcceptorContext {
  /** Whether there is room for another connection, which follows. */
  hasRoom(): boolean;
  /** Counts a refused connection. */
  refused(): void;
}
