/** Throws an error that nobody catches, while messages go to and fro. */
import { UnixSocket } from "../../src/unix/socket.ts";

const [alice, bob] = UnixSocket.pair();

async function ask(): Promise<never> {
  for (let messages = 0;; messages++) {
    if (messages === 20) setTimeout(fail);
    await alice.send(new Uint8Array(1));
    await alice.receive();
  }
}

async function answer(): Promise<never> {
  for (;;) {
    await bob.receive();
    await bob.send(new Uint8Array(1));
  }
}

function fail(): never {
  throw new Error("nobody catches this");
}

void ask(); // not awaited: whatever happens meanwhile, Bun 1.4.4 does not end a program that awaits at its top level
void answer();
