/** Lets a Python error end the process; the argument names which one. */
import process from "node:process";
import { type PyObject, Python } from "../../mod.ts";

const python = Python.open();
python.run(`def fails(x):
    return 1 / x
async def fails_later(x):
    return fails(x)`);
const fails: PyObject = python.evaluate("fails");

function program(): void {
  fails(0);
  throw new Error("unreachable");
}

async function asynchronous(name: string): Promise<void> {
  await python.async(python.evaluate(name))(0);
}

const ways: Readonly<Record<string, () => unknown>> = {
  call: () => program(),
  timer: () => setTimeout(program, 1),
  thread: () => asynchronous("fails"),
  coroutine: () => asynchronous("fails_later"),
  syntax: () => python.run("x = 1\ny = = 2"),
};

const way = ways[process.argv[2] ?? ""];
await way?.(); // the last frame
