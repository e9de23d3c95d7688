/** Makes a call and awaits it, passes Python a function, or makes a call that is no longer awaited; and exits. */
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
