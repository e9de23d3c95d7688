/**
 * Listening for those who know a secret: others learn nothing, and reach no worker.
 *
 * @module
 */
import { nodeBuiltin } from "../../ffi/mod.ts";
import type { Acceptor, AcceptorContext } from "./acceptor.ts";
import { acceptHandshake, connectHandshake, sayFull, type Secret } from "./secret_handshake.ts";
import type { HostAndPort } from "./socket_address.ts";
import { listenTcp, TcpConnection } from "./tcp_connection.ts";

/** What it needs. */
export interface SecretAcceptorContext extends AcceptorContext {
  readonly secret: Secret;
  /** How many may be asked for the secret at a time; the one that was asked first has to go when another comes. */
  readonly handshakes: number;
  /** For how long somebody is asked, in milliseconds. */
  readonly patience: number;
  /** The worker's address. */
  address(): Uint8Array;
  /** Makes an endpoint to somebody who knows the secret. */
  accept(address: Uint8Array): void;
}

// law ucx/listenWithSecret: ucx/secret
/**
 * Begins to listen.
 *
 * @param at its host a number
 * @throws {SystemError} if the port is taken, or the address is not this machine's
 */
export function listenWithSecret(at: HostAndPort, context: SecretAcceptorContext): Acceptor {
  const { secret, handshakes, patience } = context;
  const { setTimeout, clearTimeout } = nodeBuiltin("node:timers");
  /** Those who have proved nothing, in the order in which they came. */
  const asked = new Set<TcpConnection>();
  /** Those who have, and have yet to read the answer. */
  const leaving = new Set<TcpConnection>();
  const meet = (connection: TcpConnection, address: Uint8Array): boolean => {
    asked.delete(connection);
    leaving.add(connection);
    if (!context.hasRoom()) {
      context.refused();
      return false;
    }
    context.accept(address);
    return true;
  };
  const ask = async (connection: TcpConnection): Promise<void> => {
    asked.add(connection);
    const timer = setTimeout(() => connection.close(), patience);
    try {
      await acceptHandshake(connection, secret, context.address(), (address) => meet(connection, address));
      await connection.finish();
    } catch {
      // Counted already, if it was dropped.
      if (asked.has(connection) || leaving.has(connection)) context.refused();
    } finally {
      clearTimeout(timer);
      connection.close();
      asked.delete(connection);
      leaving.delete(connection);
    }
  };
  const dropOldest = () => {
    const [oldest] = asked;
    if (oldest === undefined) return;
    asked.delete(oldest);
    context.refused();
    sayFull(oldest);
    oldest.close();
  };
  const listener = listenTcp(at, (connection) => {
    if (asked.size >= handshakes) dropOldest();
    void ask(connection);
  }, dropOldest);
  return {
    host: listener.host,
    port: listener.port,
    close: () => {
      listener.close();
      for (const connection of [...asked, ...leaving]) connection.close();
    },
  };
}

/**
 * Connects to somebody who listens so.
 *
 * @param to its host a number
 * @param own the address of the worker that is to be connected
 * @returns the address of the worker behind it
 * @throws {SecretError} unless who listens there knows the secret
 * @throws {UcxError} UCS_ERR_REJECTED if the listener takes on no more
 * @throws {SystemError} ECONNREFUSED if nobody listens there
 * @throws the signal's reason
 */
export async function connectWithSecret(
  to: HostAndPort,
  secret: Secret,
  own: Uint8Array,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const connection = await TcpConnection.connect(to, signal);
  const abort = () => connection.close();
  signal.addEventListener("abort", abort);
  try {
    return await connectHandshake(connection, secret, own);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
    connection.close();
  }
}
