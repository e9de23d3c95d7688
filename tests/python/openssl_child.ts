/** Runs `openssl.py` with the module that the argument names. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { Python } from "../../mod.ts";

const python = Python.open();
const name = process.argv.at(-1) ?? "";
python.evaluate("lambda name: __import__('sys').argv.append(name)")(name);
python.run(readFileSync(new URL("./openssl.py", import.meta.url), "utf8"));
console.log(`${name} is imported`);
