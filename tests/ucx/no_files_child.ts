/** Prints whether a living process seems gone where no file can be opened, and whether it can be found then. */
import { execFileSync, spawn } from "node:child_process";
import process from "node:process";
import { PeerProcess } from "../../src/ucx/process.ts";
import { identityOf } from "./identity.ts";

const child = spawn("sleep", ["100"], { stdio: "ignore" });
const identity = identityOf(child.pid ?? 0);
const found = PeerProcess.find(identity);
execFileSync("prlimit", ["--pid", `${process.pid}`, "--nofile=1:"]);
console.log(found?.isGone(), PeerProcess.find(identity) === null);
child.kill("SIGKILL");
process.exit(0);
