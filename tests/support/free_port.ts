/**
 * A port for a test that has to know it beforehand.
 *
 * @module
 */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/**
 * A port of this machine that nobody listens on now. It is none of those that Linux gives to whoever asks for any port
 * (32768 and above): other tests do so all the time, and might get it before it is used here.
 */
export async function freePort(): Promise<number> {
  for (let i = 0; i < 100; i++) {
    const port = randomInt(21_000, 32_000); // tests/ucx/config_test.ts uses ports below
    if (await isFree(port)) return port;
  }
  throw new Error("No port from 21000 to 31999 is free");
}
