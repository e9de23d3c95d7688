/** Watches another process and exits on its own: prints how many timers were created. */
import { spawn } from "node:child_process";
import process from "node:process";
import timers from "node:timers";
import { identityOf } from "./identity.ts";

let made = 0;
for (const name of ["setTimeout", "setInterval"] as const) {
  const original = timers[name];
  const counted = (...given: unknown[]) => {
    made++;
    return Reflect.apply(original, timers, given);
  };
  Object.assign(timers, { [name]: counted });
}
const { PeerProcess } = await import("../../src/ucx/process_identity.ts");
const { PeerLiveness } = await import("../../src/ucx/peer_liveness.ts");
const child = spawn("sleep", ["100"], { stdio: "ignore" });
const watch = new PeerLiveness({ watchDescriptor: () => {} }, () => {});
watch.watch({ lose: () => Promise.resolve(), processEnded: () => {} }, PeerProcess.find(identityOf(child.pid ?? 0)));
child.unref();
process.on("exit", () => {
  child.kill("SIGKILL");
  console.log(`${made} timers`);
});
