/**
 * Looks after another process and ends, by itself: whoever looks must not keep it. The argument says what happens.
 *
 * - `watched`, `forgotten`: prints how many timers of those that were made are still set at the end
 * - `looks`: kills the other process, and prints how often its endpoint was lost after each of two looks
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import process from "node:process";
import timers from "node:timers";
import { identityOf } from "./identity.ts";

const [mode] = process.argv.slice(2);
const looks = new Map<unknown, () => void>();
let made = 0;
const { setInterval, clearInterval } = timers;
Object.assign(timers, {
  setInterval: (look: () => void, interval: number) => {
    const timer = setInterval(look, mode === "looks" ? 2 ** 30 : interval);
    looks.set(timer, look);
    made++;
    return timer;
  },
  clearInterval: (timer: ReturnType<typeof setInterval>) => {
    looks.delete(timer);
    clearInterval(timer);
  },
});
const { PeerProcess } = await import("../../src/ucx/process_identity.ts");
const { PeerLiveness } = await import("../../src/ucx/peer_liveness.ts");
const child = spawn("sleep", ["100"], { stdio: "ignore" });
const watch = new PeerLiveness();
let lost = 0;
const endpoint = { lose: () => Promise.resolve(void lost++) };
watch.watch(endpoint, PeerProcess.find(identityOf(child.pid ?? 0)));
switch (mode) {
  case "looks": {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    const counts = [0, 1].map(() => {
      for (const look of looks.values()) look();
      return lost;
    });
    console.log(counts.join(" "));
    break;
  }
  case "forgotten":
    watch.forget(endpoint);
    break;
}
child.unref();
process.on("exit", () => {
  child.kill("SIGKILL");
  if (mode !== "looks") console.log(`${looks.size} of ${made}`);
});
