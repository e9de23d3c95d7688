/**
 * Runs the matrix of one library in a separate process, and prints the outcomes as lines of JSON. Arguments: library,
 * `cpu` or `gpu`, and the trials to skip, as JSON.
 */
import process from "node:process";
import { Cuda, Python } from "../../../mod.ts";
import { runMatrix, type Trial } from "./consumers.ts";
import { libraries } from "./libraries.ts";

const [name, place, without = "[]"] = process.argv.slice(2);
const library = libraries.find((one) => one.name === name);
if (library === undefined) throw new Error(`no library ${name}`);
const conventions = library.known.filter((one) => one.place === place).map(({ convention }) => convention);
using cuda = place === "gpu" ? Cuda.open() : null;
const trials = JSON.parse(without) as Trial[]; // as matrix.ts writes them
await runMatrix(Python.open(), library, { cuda, conventions }, trials, (event) => {
  console.log(`matrix ${JSON.stringify(event)}`);
});
process.exit(0); // some libraries have threads that a runtime would wait for
