/**
 * The runtime's own HTTP server, `Deno.serve` or `Bun.serve`.
 *
 * @module
 */
import process from "node:process";

/** A server that gives every request the same response. */
export interface HttpServer extends AsyncDisposable {
  readonly url: string;
}

type Handler = () => Response;

interface DenoServer {
  readonly addr: { readonly port: number };
  shutdown(): Promise<void>;
}

interface BunServer {
  readonly port: number;
  stop(force: boolean): Promise<void>;
}

/** The globals of the two runtimes that are used here. */
interface Globals {
  readonly Deno?: {
    serve(options: { hostname: string; port: number; onListen(): void }, handler: Handler): DenoServer;
  };
  readonly Bun?: { serve(options: { hostname: string; port: number; fetch: Handler }): BunServer };
}

/** Serves on a port of this machine. */
export function serveHttp(text: string): HttpServer {
  const { Deno, Bun }: Globals = globalThis as Globals;
  const address = { hostname: "127.0.0.1", port: 0 };
  const handler = () => new Response(text);
  const at = (port: number) => `http://${address.hostname}:${port}/`;
  if (Bun !== undefined) {
    const server = Bun.serve({ ...address, fetch: handler });
    return { url: at(server.port), [Symbol.asyncDispose]: () => server.stop(true) };
  }
  if (Deno === undefined) throw new TypeError(`Cannot serve in ${process.release.name}: expected Deno or Bun`);
  const server = Deno.serve({ ...address, onListen: () => {} }, handler);
  return { url: at(server.addr.port), [Symbol.asyncDispose]: () => server.shutdown() };
}
