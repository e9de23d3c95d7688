/**
 * Where a listener's connections come in: `native_acceptor.ts` is UCX's own, `secret_acceptor.ts` asks for a secret.
 *
 * @module
 */
import type { HostAndPort } from "./socket_address.ts";

/** What accepts connections at a port. */
export interface Acceptor extends HostAndPort {
  close(): void;
}

/** What every acceptor needs to know of its listener. */
export interface AcceptorContext {
  /** Whether there is room for another connection, which comes next. */
  hasRoom(): boolean;
  /** Counts somebody who was not let in. */
  refused(): void;
}
