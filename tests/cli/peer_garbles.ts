/**
 * A second process for the demo whose address is cut short, because it is being killed: its end is told after the
 * address.
 */
import process from "node:process";

process.stdout.write('{"address": "00\n');
setTimeout(() => process.kill(process.pid, "SIGKILL"), 50);
