/** Runs the matrix of one library in a process of its own, and prints it as JSON. Arguments: library, `cpu` or `gpu`. */
import process from "node:process";
import { Cuda, Python } from "../../mod.ts";
import { runMatrix } from "./consumers.ts";
import { libraries } from "./libraries.ts";

const [name, place] = process.argv.slice(2);
const library = libraries.find((one) => one.name === name);
if (library === undefined) throw new Error(`no library ${name}`);
const conventions = library.known.filter((one) => one.place === place).map(({ convention }) => convention);
using cuda = place === "gpu" ? Cuda.open() : null;
const matrix = await runMatrix(Python.open(), library, conventions, cuda);
console.log(JSON.stringify(matrix));
process.exit(0); // some libraries have threads that a runtime would wait for
