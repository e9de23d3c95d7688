/** Throws an error that nobody catches, while messages flow. */
import { Ucx } from "../../mod.ts";

async function flow(): Promise<never> {
  const ucx = Ucx.open();
  const [alice, bob] = [ucx.createWorker(), ucx.createWorker()];
  const toBob = await alice.connect(bob.address);
  const [out, into] = [new Uint8Array(2 ** 20), new Uint8Array(2 ** 20)];
  for (let messages = 0;; messages++) {
    if (messages === 20) setTimeout(fail);
    await Promise.all([bob.recv(into), toBob.send(out)]);
  }
}

function fail(): never {
  throw new Error("nobody catches this");
}

void flow(); // not awaited: whatever happens meanwhile, Bun 1.4.4 does not end a program that awaits at its top level
