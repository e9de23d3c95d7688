/** Prints the environment variables named on the command line, as the port reads them. */
import process from "node:process";
import { ffiPort } from "../../../src/ffi/port.ts";

console.log(JSON.stringify(process.argv.slice(2).map((name) => ffiPort().env(name) ?? null)));
