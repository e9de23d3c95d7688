/**
 * Opens UCX, and gets the signal of a terminal that closes, which ends the process.
 *
 * @module
 */
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { Ucx } from "../../mod.ts";

using ucx = Ucx.open();
ucx.createWorker();
process.kill(process.pid, "SIGHUP");
await pause(10_000);
