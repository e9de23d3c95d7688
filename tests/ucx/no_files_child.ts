/** Prints whether a living process seems gone where no file can be opened, and whether it can be found then. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { PeerProcess } from "../../src/ucx/process.ts";
import { identityOf } from "./identity.ts";

function canOpenFiles(): boolean {
  try {
    readFileSync("/proc/self/stat");
    return true;
  } catch {
    return false;
  }
}

const child = spawn("sleep", ["100"], { stdio: "ignore" });
const identity = identityOf(child.pid ?? 0);
const found = PeerProcess.find(identity);
// Later: to start a program takes descriptors until it runs, which the program may be quicker to forbid (Bun: EMFILE).
spawn("sh", ["-c", `sleep 0.5; prlimit --pid ${process.pid} --nofile=1:`], { stdio: "ignore" });
while (canOpenFiles()) await new Promise((resolve) => setTimeout(resolve, 20));
console.log(found?.isGone(), PeerProcess.find(identity) === null);
child.kill("SIGKILL");
process.exit(0);
