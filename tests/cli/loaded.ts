/** Loads the command line and nothing else of the package, and opens a checked Cuda with the modules that it loads. */
import process from "node:process";
import { Cuda } from "../../src/cuda/cuda.ts";

process.exit = () => undefined as never; // the command line ends the process after printing its help
process.argv.splice(2, Infinity, "help");
await import("../../src/cli/main.ts");
using cuda = Cuda.simulate({ check: true });
console.log(`${cuda.devices.length} checked`);
