/** Pins itself to a processor and prints, as JSON, where each of its threads may then run. */
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import "../../mod.ts";
import { runOn } from "../../src/unix/mod.ts";

const before = readdirSync("/proc/self/task").length;
runOn(Number(process.argv[2]));
const allowed = readdirSync("/proc/self/task").map((thread) => {
  const status = readFileSync(`/proc/self/task/${thread}/status`, "utf8");
  return /^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1];
});
console.log(JSON.stringify({ before, allowed }));
