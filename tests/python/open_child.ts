/**
 * Opens Python as the arguments say, in a separate process, and prints which one it is or why none was opened. The
 * arguments are the options as JSON, and the path of a library to load first.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { Python } from "../../mod.ts";
import { libc } from "../../src/ffi/libc.ts";
import { RTLD } from "../../bindings/libc.ts";
import { cString } from "../../src/ffi/c_string.ts";

/** The signals that this process catches, as a bit mask in hex. */
function caughtSignals(): string {
  return /^SigCgt:\s*(\w+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "";
}

const [options = "{}", before] = process.argv.slice(2);
if (before !== undefined) libc().loading.dlopen(cString(before), RTLD.NOW | RTLD.GLOBAL);
const caught = caughtSignals();
try {
  const python = Python.open(JSON.parse(options));
  const sys = python.import("sys");
  python.import("signal"); // it takes over Ctrl-C if it can
  python.run("print('caf\\u00e9', end='')\nprint()"); // a pipe's buffer must not swallow it
  console.log(JSON.stringify({
    library: python.library,
    version: python.version,
    executable: sys["executable"],
    prefix: sys["prefix"],
    encoding: sys["stdout"].encoding,
    signals: `${caught} ${caughtSignals()}`,
  }));
} catch (error) {
  console.log(JSON.stringify({ error: String(error) }));
}
process.exit(0);
