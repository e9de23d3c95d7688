/**
 * Listening for peers that know a secret: others learn nothing, and reach no worker.
 *
 * @module
 */
import { timeLimit } from "../limit.ts";
import type { Acceptor, AcceptorContext } from "./acceptor.ts";
import { acceptHandshake, connectHandshake, sayFull, type Secret } from "./secret_handshake.ts";
import type { HostAndPort } from "./socket_address.ts";
import { listenTcp, TcpConnection } from "./tcp_connection.ts";

/** What a secret acceptor needs. */
export interface SecretAcceptorContext extends AcceptorContext {
  readonly secret: Secret;
  /** How many handshakes may run at a time; the oldest is dropped when another connection arrives. */
  readonly handshakes: number;
  /** How long a handshake may take, in milliseconds. */
  readonly patience: number;
  /** The worker's address. */
  address(): Uint8Array;
  /** Creates an endpoint to a peer that knows the secret. */
  accept(address: Uint8Array): void;
}

// law ucx/listenWithSecret: ucx/secret
/**
 * Starts listening.
 *
 * @param at with a numeric host
 * @throws {SystemError} if the port is taken, or the address is not this machine's
 */
export function listenWithSecret(at: HostAndPort, context: SecretAcceptorContext): Acceptor {
  const { secret, handshakes, patience } = context;
  /** Peers that have not proved the secret, in order of arrival. */
  const asked = new Set<TcpConnection>();
  /** Peers that have, and have yet to read the answer. */
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
    const { signal, clear } = timeLimit("ucp_worker_progress", { timeout: patience });
    signal?.addEventListener("abort", () => connection.close());
    try {
      await acceptHandshake(connection, secret, context.address(), (address) => meet(connection, address));
      await connection.finish();
    } catch {
      // A dropped connection is counted already.
      if (asked.has(connection) || leaving.has(connection)) context.refused();
    } finally {
      clear();
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
 * Connects to a listener that requires a secret.
 *
 * @param to with a numeric host
 * @param own the address of the local worker
 * @returns the address of the listener's worker
 * @throws {SecretError} unless the listener knows the secret
 * @throws {UcxError} UCS_ERR_REJECTED if the listener accepts no more
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
