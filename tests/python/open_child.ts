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

/** The signals that this process ignores, and those that it catches, as bit masks in hex. */
function handledSignals(): string {
  const status = readFileSync("/proc/self/status", "utf8");
  return [...status.matchAll(/^Sig(?:Ign|Cgt):\s*(\w+)$/gm)].map(([, mask]) => mask).join();
}

/** Forks a process that stays in Python, as the workers of a pool do, and returns how a signal has ended it. */
const endingFork = `
def ended_by(number):
    import os, signal, time
    handler = signal.signal(signal.SIGHUP, lambda *_: os._exit(7))
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(tell, b".")
        time.sleep(20)
        os._exit(1)
    os.read(told, 1)
    signal.signal(signal.SIGHUP, handler)
    os.kill(child, number)
    return os.waitpid(child, 0)[1]
`;

const [options = "{}", before] = process.argv.slice(2);
if (before !== undefined) libc().loading.dlopen(cString(before), RTLD.NOW | RTLD.GLOBAL);
const handled = handledSignals();
try {
  const python = Python.open(JSON.parse(options));
  const sys = python.import("sys");
  python.import("signal"); // it takes over Ctrl-C if it can
  python.run("print('caf\\u00e9', end='')\nprint()"); // a pipe's buffer must not swallow it
  const signals = `${handled} ${handledSignals()}`;
  process.on("SIGTERM", () => {});
  python.run(endingFork);
  console.log(JSON.stringify({
    library: python.library,
    version: python.version,
    executable: sys["executable"],
    prefix: sys["prefix"],
    encoding: sys["stdout"].encoding,
    lock: String(python.evaluate("getattr(__import__('sys'), '_is_gil_enabled', lambda: True)()")),
    demand: String(python.evaluate("__import__('os').environ.get('PYTHON_GIL')") ?? undefined),
    signals,
    ended: [15, 1].map((number) => python.evaluate("ended_by")(number)),
  }));
} catch (error) {
  console.log(JSON.stringify({ error: String(error) }));
}
process.exit(0);
