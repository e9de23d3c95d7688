/** The other process: receives files, reports their content, writes into them, and sends back one of its own. */
import process from "node:process";
import { UnixSocket } from "../../src/unix/socket.ts";
import { contentOf, fileWith, overwrite } from "../support/open_files.ts";

const [path = "", mode = ""] = process.argv.slice(2);
using socket = await UnixSocket.connect(path, { timeout: 20_000 });

if (mode === "die") {
  await socket.send(new Uint8Array([1]));
  process.kill(process.pid, "SIGKILL");
}
for (let message = await socket.receive(); message !== null; message = await socket.receive()) {
  const contents = message.descriptors.map((file) => [...contentOf(file)]);
  for (const file of message.descriptors) overwrite(file, new TextEncoder().encode("seen"));
  const answer = { data: [...message.data], contents, parent: socket.peer.pid };
  const own = fileWith(new TextEncoder().encode(`file of ${process.pid}`));
  await socket.send(new TextEncoder().encode(JSON.stringify(answer)), [own]);
  for (const file of [own, ...message.descriptors]) file.close();
}
