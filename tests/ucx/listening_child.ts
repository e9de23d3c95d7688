/**
 * Serves a client without a top-level await: a process that listens, or waits for messages, stays alive, and exits on
 * its own afterwards. The client is started by a timer that does not keep the process alive.
 */
import { setTimeout } from "node:timers";
import { Ucx } from "../../src/ucx/ucx.ts";

const ucx = Ucx.open({ config: { TLS: "tcp" } });
const [server, client] = [ucx.createWorker(), ucx.createWorker()];

async function serve(): Promise<void> {
  await using listener = await server.listen();
  const connect = async () => {
    const endpoint = await client.connect(listener);
    setTimeout(() => endpoint.sendMessage(Uint8Array.of(1), { header: "late" }), 200).unref();
  };
  setTimeout(connect, 200).unref();
  const endpoint = await listener.accept();
  await listener.close();
  for await (const message of endpoint?.messages() ?? []) {
    console.log(JSON.stringify(message.text));
    message.release();
    break;
  }
}

void serve();
