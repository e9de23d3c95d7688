/** Prints whether a living process is reported as gone when no file can be opened, and whether it can be found then. */
import { spawn } from "node:child_process";
import process from "node:process";
import { PeerProcess } from "../../src/ucx/process_identity.ts";
import { limitFiles } from "../support/few_files.ts";
import { identityOf } from "./identity.ts";

const child = spawn("sleep", ["100"], { stdio: "ignore" });
const identity = identityOf(child.pid ?? 0);
const found = PeerProcess.find(identity);
limitFiles(1n);
console.log(found?.isGone(), PeerProcess.find(identity) === null);
child.kill("SIGKILL");
process.exit(0);
