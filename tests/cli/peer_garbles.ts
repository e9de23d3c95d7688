/**
 * A second process for the demo whose address is truncated, because it is being killed: its exit is reported after the
 * address.
 */
import process from "node:process";

process.stdout.write('{"address": "00\n');
setTimeout(() => process.kill(process.pid, "SIGKILL"), 50);
