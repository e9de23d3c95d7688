/**
 * Exits in the way that the first argument names, while a call is made if the second one says so. What the C library
 * runs at exit would end the process by SIGABRT.
 */
import process from "node:process";
import { Python } from "../../mod.ts";

const [way, isBusy] = process.argv.slice(-2);
const python = Python.open();
python.run(`
import ctypes, time
process = ctypes.CDLL(None)
process["__cxa_atexit"](ctypes.cast(process.abort, ctypes.c_void_p), None, None)
def work(begun):
    begun()
    time.sleep(1000)
`);
await python.async(python.builtins["abs"])(-1);
if (isBusy === "true") await new Promise<void>((begun) => void python.async(python.evaluate("work"))(() => begun()));
setTimeout(() => {
  if (way === "throw") throw new Error("uncaught");
  process.exit(7);
});
