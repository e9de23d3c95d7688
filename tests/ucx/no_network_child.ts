/** Listens and connects with a secret, without one, and by name. Prints all outcomes as one JSON value. */
import process from "node:process";
import { Ucx } from "../../src/ucx/ucx.ts";

const ucx = Ucx.open();
const worker = ucx.createWorker();
const outcomes: Record<string, string> = {};
const outcome = async (name: string, work: () => Promise<unknown>) => {
  outcomes[name] = await work().then(() => "ok", String);
};
const secret = "s3cret";

for (const asking of [{}, { secret }]) {
  await outcome(`listen and connect${"secret" in asking ? " with a secret" : ""}`, async () => {
    const listener = worker.listen({ host: "localhost", ...asking });
    const to = { host: "localhost", port: listener.port, ...asking };
    const [there] = await Promise.all([worker.connect(to), listener.accept()]);
    await there.close();
    await listener.close();
  });
}
const unknownHost = { host: "no.such.name.invalid", port: 1 };
await outcome("connect by name", () => worker.connect(unknownHost));
await outcome("connect with a secret, by name", () => worker.connect({ ...unknownHost, secret }));
console.log(JSON.stringify(outcomes));
process.exit(0);
