/**
 * The server of `causeway send-recv` as a second process of this program.
 *
 * @module
 */
import { firstLine, ownCommand, startPartner } from "../child_process.ts";

/** The second process, and what is known of it. */
export interface ServerProcess extends AsyncDisposable {
  /** The port that it listens at. */
  readonly port: number;
  /** Rejects if it ends in any other way than with exit code 0. */
  readonly failed: Promise<never>;
}

/**
 * Starts the server. It ends when it has served, or when this process does.
 *
 * @param args as they were given to this process
 * @throws {Error} if it ends before it listens; it has said why
 */
export async function startServer(args: readonly string[]): Promise<ServerProcess> {
  const command = ownCommand("send-recv-server", ...args);
  const { child, failed } = startPartner(command, (what) => new Error(`The server ${what}`), true);
  const ended = Promise.withResolvers<void>();
  child.once("exit", () => ended.resolve());
  // UCX warns on standard output, too, if UCX_LOG_FILE says so.
  const port = await Promise.race([firstLine(child.stdout, (line) => /^\d+$/.test(line)), failed]);
  const dispose = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.stdin?.destroy(); // on which it ends, if it has not served
      await ended.promise;
    }
  };
  return { port: Number(port ?? await failed), failed, [Symbol.asyncDispose]: dispose };
}
