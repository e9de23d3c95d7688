/** Gets a signal whose handler in Python raises, while calls are pending; prints how they have ended. */
import process from "node:process";
import { Python } from "../../mod.ts";

const py = Python.open();
py.run(`
import signal, time
def late(*_): raise TimeoutError("late")
signal.signal(signal.SIGALRM, late)
def ask(function): return function(3)
`);
const uncaught: string[] = [];
process.on("uncaughtException", (error) => uncaught.push(error.message));
const calls = [py.async(py.import("time")["sleep"])(0.01), py.async(py.evaluate("ask"))((n: number) => n * 2)];
process.kill(process.pid, "SIGALRM"); // Python handles it when it next runs on this thread: to tell what is over
const results = await Promise.allSettled(calls);
const later = await py.async(py.builtins["abs"])(-3);
console.log(JSON.stringify({ results, later, uncaught }));
process.exit(0);
