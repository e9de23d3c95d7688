/**
 * The server of `causeway send-recv` as a second process of this program.
 *
 * @module
 */
import { firstLine, ownCommand, startPartner } from "../child_process.ts";

/** The second process, and what is known about it. */
export interface ServerProcess extends AsyncDisposable {
  /** The port that it listens on. */
  readonly port: number;
  /** Rejects if it exits in any other way than with code 0. */
  readonly failed: Promise<never>;
}

/**
 * Starts the server. It exits when it has served its client, or when this process exits.
 *
 * @param args as given to this process
 * @throws {Error} if it exits before it listens; it has printed why
 */
export async function startServer(args: readonly string[]): Promise<ServerProcess> {
  const command = ownCommand("send-recv-server", ...args);
  const { child, failed } = startPartner(command, (what) => new Error(`The server ${what}`), true);
  const ended = Promise.withResolvers<void>();
  child.once("exit", () => ended.resolve());
  // UCX also warns on standard output if UCX_LOG_FILE says so.
  const port = await Promise.race([firstLine(child.stdout, (line) => /^\d+$/.test(line)), failed]);
  const dispose = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.stdin?.destroy(); // which makes it exit, if it has not served
      await ended.promise;
    }
  };
  return { port: Number(port ?? await failed), failed, [Symbol.asyncDispose]: dispose };
}
