/** Closes endpoints without error handling while bytes flow both ways, and prints that it reached its end. */
import { Ucx } from "../../src/ucx/ucx.ts";

for (let round = 0; round < 5; round++) {
  const ucx = Ucx.open();
  const [server, client] = [ucx.createWorker(), ucx.createWorker()];
  const listener = await server.listen({ errors: "none" });
  const there = await client.connect(listener, { errors: "none" });
  const here = await listener.accept();
  if (here === null) throw new Error("no client has connected");
  const pass = async (from: typeof there, to: typeof there) => {
    const [writer, reader] = [from.writable.getWriter(), to.readable.getReader()];
    for (let i = 0; i < 5; i++) {
      await writer.write(new Uint8Array(1000));
      await reader.read();
    }
    for (const end of [writer.closed, reader.closed]) end.catch(() => {}); // the close cuts it off
  };
  await Promise.all([pass(there, here), pass(here, there)]);
  await Promise.all([there.close(), here.close()]);
  await Promise.all([server.close(), client.close()]);
  ucx.close();
}
console.log(JSON.stringify("ended"));
