/**
 * Makes a call and awaits it, passes Python a function, makes a call that is no longer awaited, or calls that find no
 * thread; and exits.
 */
import process from "node:process";
import { Python } from "../../mod.ts";

const python = Python.open();
const what = process.argv[2];
const signal = AbortSignal.abort();
if (what === "call") void python.async(python.import("time")["sleep"])(0.2).then(() => console.log("over"));
if (what === "function") python.evaluate("lambda function: function(1)")((x: number) => console.log(x));
if (what === "aborted") {
  void python.async(python.import("time")["sleep"], { signal })(60).catch(() => console.log("aborted"));
}
if (what === "no thread") { // the system has none for a while
  python.run(`
import threading
start = threading.Thread.start
def refuse(self): raise RuntimeError("can't start new thread")
threading.Thread.start = refuse
async def later(): return 5
def gives(): return later()
`);
  const [abs, gives, later] = [python.builtins["abs"], python.evaluate("gives"), python.evaluate("later")].map((one) =>
    python.async(one)
  );
  const said: unknown[] = [];
  const call = async (made: Promise<unknown> | undefined) => said.push(await made?.catch(() => "no"));
  for (let i = 0; i < 40; i++) await call(abs?.(-3));
  await call(later?.());
  python.run("threading.Thread.start = start");
  await call(abs?.(-3));
  python.run("threading.Thread.start = refuse");
  for (let i = 0; i < 40; i++) await call(gives?.());
  python.run("threading.Thread.start = start");
  await call(gives?.());
  console.log([...new Set(said.map((one, i) => `${one} ${[40, 41, 82].includes(i) ? i : ""}`))].join(","));
}
