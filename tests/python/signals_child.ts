/** Gets signals whose handler in Python raises, while calls are pending; prints how they have ended. */
import process from "node:process";
import { assertEquals } from "@std/assert";
import { Python } from "../../mod.ts";

const py = Python.open();
py.run(`
import signal, threading, time
def late(*_): raise TimeoutError("late")
signals = signal.SIGALRM, signal.SIGVTALRM, signal.SIGUSR2, signal.SIGIO, signal.SIGURG
for number in signals: signal.signal(number, late)
def ask(function): return function(3)
async def ask_async(function): return await function(3)
def give_up(function):
    type(function).__call__.__globals__["PATIENCE"] = 0
    def asks():
        try: function(3)
        except RuntimeError: pass
    thread = threading.Thread(target=asks)
    thread.start()
    thread.join()
class Refuses:
    def __dlpack__(self, **_): raise ValueError
class Kept:
    @property
    def dropped(self):
        self.function = None
        return Refuses()
kept = Kept()
`);
const uncaught: string[] = [];
process.on("uncaughtException", (error) => uncaught.push(error.message));
await py.async(py.builtins["abs"])(-3); // all that runs on this thread once, at the first call, has run
const twice = (n: number) => n * 2;
const kept = py.evaluate("kept");
kept.function = twice; // nothing but the handler runs on this thread when the calls are over: no function is gone
const calls = [py.async(py.import("time")["sleep"])(0.01), py.async(py.evaluate("ask"))(twice)];
process.kill(process.pid, "SIGALRM"); // Python handles it when it next runs on this thread: to tell what is over
const results = await Promise.allSettled(calls);
const later = await py.async(py.builtins["abs"])(-3);
const first = [...uncaught];

const names = ["SIGALRM", "SIGVTALRM", "SIGUSR2", "SIGIO", "SIGURG"] as const;

/** Sends more signals than there are steps of an answer at which Python could handle one. */
function storm(): void {
  for (const name of names) process.kill(process.pid, name);
}

/** Handles the signals that are left. */
function handleAll(): void {
  for (const _ of names) {
    try {
      py.run("pass");
    } catch { // as it should
    }
  }
}

/** Leaves something to be done when the lock is next taken: a reference to release, and a function that is gone. */
function leaveWork(): void {
  kept.function = () => {};
  assertEquals(typeof kept.dropped, "function"); // an object, after an exception that nobody sees
}

process.on("unhandledRejection", () => {});
const asked = [];
for (
  const [helper, answer] of [
    ["ask", (n: number) => (storm(), n * 2)],
    ["ask", () => {
      storm();
      throw new RangeError("no answer");
    }],
    ["ask", () => (storm(), Symbol("not for Python"))],
    ["ask", (n: number) => (leaveWork(), storm(), n)],
    ["ask_async", async (n: number) => (await storm(), n * 3)],
  ] as const
) {
  asked.push(await py.async(py.evaluate(helper))(answer).catch((error) => error.name));
  handleAll();
}
let here = "";
try {
  py.evaluate("ask")(() => {
    process.kill(process.pid, "SIGALRM");
    throw new RangeError("no answer");
  });
} catch (error) {
  here = String(error);
}
py.evaluate("give_up")(twice);
kept.function = () => {};
assertEquals(typeof kept.dropped, "function"); // a function that is gone
storm();
await new Promise((resolve) => setTimeout(resolve, 100)); // the request that was given up is taken meanwhile
handleAll();
const slept = await py.async(py.import("time")["sleep"])(0.01); // not if this thread keeps Python's lock
console.log(JSON.stringify({ results, later, uncaught: first, asked, here, slept }));
process.exit(0);
